"""Podium's toolbox for a CLI without hands: an MCP server on stdin and stdout, one for each turn.

Runs alone, started by `isolated.py`, with PODIUM_DOOR and PODIUM_DOOR_TOKEN of `TurnDoor.env` in the
environment. It does nothing itself: every call is put before the turn's door, which judges,
performs and records it. It ends with its stdin.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from podium.sandbox.mcp_door import DoorUnreachable, McpToolbox, failed

PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions whose `initialize`, `tools` and `ping` are as they are here, the newest first."""
MAX_WAITING = 256
"""Calls that are not answered yet."""
MAX_LINE_BYTES = 16_000_000
MAX_CALL_BYTES = 900_000
"""Largest call that still fits into one message to the hook server."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
NOT_REACHED = -32000

INSTRUCTIONS = (
    "These tools are all you can act with: Podium performs each call and tells what came of it. "
    "After `Permission Denied` nothing was done, and the same call is refused again. "
    "When you are told to wait for an approval, end your turn."
)

Answer = dict[str, object]


class JsonRpcError(Exception):
    """A request that cannot be answered; the number is one of JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class McpServer:
    """Answers one CLI. What is asked while a call is at work is answered at once.

    Calls themselves are performed one after the other, as they came: what a model writes and reads
    again in one answer depends on it.
    """

    def __init__(self, stdin: BinaryIO, stdout: int) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._saying = threading.Lock()
        self._calls = ThreadPoolExecutor(1)
        self._lists = ThreadPoolExecutor(1)
        self._waiting = threading.Semaphore(MAX_WAITING)
        self._toolbox = McpToolbox()

    def serve(self) -> None:
        """Answer until the CLI has closed the line."""
        while line := self._stdin.readline(MAX_LINE_BYTES + 1):
            if len(line) > MAX_LINE_BYTES:
                self._skip_rest(line)
                self._complain(None, JsonRpcError(PARSE_ERROR, "the line is too long; send less"))
            elif line.strip():
                self._take(line)

    def _skip_rest(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._stdin.readline(MAX_LINE_BYTES)

    def _take(self, line: bytes) -> None:
        number: object = None
        try:
            request = _read(line)
            number = request.get("id")
            self._begin(request, len(line))
        except JsonRpcError as error:
            self._complain(number, error)

    def _begin(self, request: Answer, size: int) -> None:
        method, number = request.get("method"), request.get("id")
        if method is None and ("result" in request or "error" in request):
            return  # an answer, and we never ask
        if not isinstance(method, str):
            raise JsonRpcError(INVALID_REQUEST, "the request names no method; name one")
        if "id" not in request:
            return  # news: none of it changes what we do
        if not _is_id(number):
            raise JsonRpcError(INVALID_REQUEST, "the id is neither a text nor a whole number")
        params = {} if request.get("params") is None else request["params"]
        if not isinstance(params, dict):
            raise JsonRpcError(INVALID_PARAMS, "params is no object; send one")
        if method == "tools/call":
            self._call(number, params, size)
        elif method == "tools/list":
            self._apart(self._lists, number, lambda: {"tools": self._toolbox.listed()})
        else:
            self._say({"id": number, "result": _at_once(method, params)})

    def _call(self, number: object, params: Answer, size: int) -> None:
        name, arguments = params.get("name"), params.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(name, str) or not name:
            raise JsonRpcError(INVALID_PARAMS, "the call names no tool; name one of tools/list")
        if not isinstance(arguments, dict):
            problem = "the arguments are not an object; nothing was done, call it again"
            self._say({"id": number, "result": failed(problem)})
        elif size > MAX_CALL_BYTES:
            problem = f"the call has {size} bytes and {MAX_CALL_BYTES} fit; nothing was done"
            self._say({"id": number, "result": failed(f"{problem}, send less")})
        else:
            checked_arguments = arguments
            self._apart(
                self._calls, number, lambda: self._toolbox.performed(name, checked_arguments)
            )

    def _apart(
        self, worker: ThreadPoolExecutor, number: object, work: Callable[[], Answer]
    ) -> None:
        """Do it beside what else is asked."""
        if not self._waiting.acquire(blocking=False):
            raise JsonRpcError(NOT_REACHED, "too many at once; nothing was done, try again")
        worker.submit(self._work, number, work)

    def _work(self, number: object, work: Callable[[], Answer]) -> None:
        try:
            self._say({"id": number, "result": work()})
        except DoorUnreachable as error:
            self._complain(number, JsonRpcError(NOT_REACHED, str(error)))
        except Exception as error:
            self._complain(
                number, JsonRpcError(NOT_REACHED, f"the call broke ({error!r}); end your turn")
            )
        finally:
            self._waiting.release()

    def _complain(self, number: object, error: JsonRpcError) -> None:
        number = number if _is_id(number) else None
        self._say({"id": number, "error": {"code": error.code, "message": str(error)}})

    def _say(self, answer: Answer) -> None:
        data = json.dumps({"jsonrpc": "2.0", **answer}).encode() + b"\n"
        try:
            with self._saying:
                while data:
                    data = data[os.write(self._stdout, data) :]
        except OSError:
            os._exit(0)  # the CLI is gone


def _is_id(number: object) -> bool:
    return isinstance(number, str | int) and not isinstance(number, bool)


def _read(line: bytes) -> Answer:
    try:
        request = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise JsonRpcError(PARSE_ERROR, f"the line is not JSON ({type(error).__name__})") from None
    if not isinstance(request, dict):
        raise JsonRpcError(
            INVALID_REQUEST, "the line is no request; send one JSON object on one line"
        )
    return request


def _at_once(method: str, params: Answer) -> Answer:
    if method == "ping":
        return {}
    if method != "initialize":
        raise JsonRpcError(METHOD_NOT_FOUND, f"there is no {method[:100]!r} here; there are tools")
    wished = params.get("protocolVersion")
    return {
        "protocolVersion": wished if wished in PROTOCOLS else PROTOCOLS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "podium", "version": "1"},
        "instructions": INSTRUCTIONS,
    }


def main() -> None:
    try:
        McpServer(sys.stdin.buffer, sys.stdout.fileno()).serve()
    finally:
        # Not by the interpreter's own way out: it would wait for calls that nobody hears the end of.
        os._exit(0)
