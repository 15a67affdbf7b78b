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

from podium.core import tool_replies
from podium.sandbox.hook_client import HookDenied, ask_door

MAX_NAME = 48
"""CLIs put `mcp__podium__` before it, and providers take 64 characters in all."""
MAX_RESULT_CHARACTERS = 40_000
"""More than the toolbox hands out, and less than what makes a CLI put it into a file instead."""

ADDED_BY_CLIS = ("wait_for_previous",)
"""Gemini CLI offers this with every tool, heeds it, and hands it on to a server that never asked for it."""


FINISH = "finish"
FINISHED = "you have called `finish`, and no more calls are performed; end your turn"


class DoorUnreachable(Exception):
    """The door did not answer, or with nonsense. The text says so."""


def mcp_server_command() -> tuple[str, ...]:
    """The command by which a CLI starts its only MCP server. It needs the variables of `TurnDoor.env`."""
    start = f"{__file__.rpartition('/')[0]}/isolated.py"
    return (sys.executable, "-IS", start, "podium.sandbox.mcp_server")


class McpToolbox:
    """The tools of this turn, under names that every CLI and provider takes."""

    def __init__(self) -> None:
        self._specs: dict[str, dict[str, object]] = {}
        self._is_finished = False

    def listed(self) -> list[dict[str, object]]:
        """The tools as the protocol lists them. Raises `DoorUnreachable`."""
        answer = _asked({"op": "tools"})
        tools = answer.get("tools")
        if answer.get("decision") != "allow" or not isinstance(tools, list):
            raise DoorUnreachable(
                f"Podium did not list its tools: {answer.get('say') or tool_replies.NO_REASON}"
            )
        specs = {str(spec["name"]): spec for spec in tools if isinstance(spec, dict)}
        names = tool_replies.offered_names(specs, MAX_NAME)
        self._specs = {name: specs[real] for name, real in names.items()}
        return [_listed(name, spec) for name, spec in self._specs.items()]

    def performed(self, name: str, arguments: dict[str, object]) -> dict[str, object]:
        """Perform a call; the result is as the model is to see it."""
        if self._is_finished:
            return as_tool_result(tool_replies.refusal_text(FINISHED), ok=False)
        spec = self._specs.get(name, {})
        properties = _schema(spec).get("properties")
        own = properties if isinstance(properties, dict) else {}
        meant = {
            argument: value
            for argument, value in arguments.items()
            if argument in own or argument not in ADDED_BY_CLIS
        }
        # A name that was not offered stays, for the door to refuse.
        tool = str(spec.get("name") or name)
        result = _performed(tool, meant)
        self._is_finished = tool == FINISH and not result["isError"]
        return result


def _listed(name: str, spec: dict[str, object]) -> dict[str, object]:
    return {
        "name": name,
        "description": str(spec.get("description") or spec["name"]),
        "inputSchema": {"properties": {}, **_schema(spec), "type": "object"},
    }


def _schema(spec: dict[str, object]) -> dict[str, object]:
    schema = spec.get("input_schema")
    return schema if isinstance(schema, dict) else {}


def _performed(tool: str, arguments: dict[str, object]) -> dict[str, object]:
    try:
        answer = _asked({"op": "perform", "tool": tool, "arguments": arguments})
    except DoorUnreachable as error:
        return failed(
            f"{error}. It is unknown whether the call was performed; end your turn and say so"
        )
    outcome, say = answer.get("outcome"), str(answer.get("say") or "")
    if answer.get("decision") != "allow" or not isinstance(outcome, dict):
        waits = answer.get("decision") == "ask"
        text = tool_replies.refusal_text(say, mistake=bool(answer.get("mistake")), waits=waits)
        return as_tool_result(text, ok=False)
    ok, error_text = bool(outcome.get("ok")), str(outcome.get("error") or "")
    text = tool_replies.outcome_text(
        tool, ok, outcome.get("result"), error_text, MAX_RESULT_CHARACTERS
    )
    return as_tool_result(text, ok=ok)


def failed(message: str) -> dict[str, object]:
    return as_tool_result(tool_replies.failure_text(message), ok=False)


def as_tool_result(text: str, *, ok: bool) -> dict[str, object]:
    """Text as the result of a call. Where it failed, the model is told so beside them."""
    text = tool_replies.cut_to(MAX_RESULT_CHARACTERS, text)
    return {"content": [{"type": "text", "text": text}], "isError": not ok}


def _asked(message: dict[str, object]) -> dict[str, object]:
    try:
        return ask_door(message)
    except HookDenied as error:
        # What a hook is told: there it means no. Here something may have been done already.
        raise DoorUnreachable(str(error).removesuffix("; denied")) from None
    except (ValueError, RecursionError) as error:
        raise DoorUnreachable(f"Podium's answer cannot be read ({type(error).__name__})") from None


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
    "You can act only through these tools: Podium performs each call and returns its result. "
    "After `Permission Denied` nothing was done, and the same call will be refused again. "
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
            raise JsonRpcError(INVALID_REQUEST, "the request has no method; add one")
        if "id" not in request:
            return  # news: none of it changes what we do
        if not _is_id(number):
            raise JsonRpcError(INVALID_REQUEST, "the id is neither a string nor an integer")
        params = {} if request.get("params") is None else request["params"]
        if not isinstance(params, dict):
            raise JsonRpcError(INVALID_PARAMS, "params is not an object; send one")
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
            raise JsonRpcError(INVALID_PARAMS, "the call has no tool name; use one of tools/list")
        if not isinstance(arguments, dict):
            problem = "the arguments are not an object; nothing was done; call it again"
            self._say({"id": number, "result": failed(problem)})
        elif size > MAX_CALL_BYTES:
            problem = f"the call has {size} bytes, more than the limit of {MAX_CALL_BYTES}; nothing was done"
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
            raise JsonRpcError(NOT_REACHED, "too many calls at once; nothing was done; try again")
        worker.submit(self._work, number, work)

    def _work(self, number: object, work: Callable[[], Answer]) -> None:
        try:
            self._say({"id": number, "result": work()})
        except DoorUnreachable as error:
            self._complain(number, JsonRpcError(NOT_REACHED, str(error)))
        except Exception as error:
            self._complain(
                number,
                JsonRpcError(
                    NOT_REACHED, f"the call failed unexpectedly ({error!r}); end your turn"
                ),
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
            INVALID_REQUEST, "the line is not a request; send one JSON object on one line"
        )
    return request


def _at_once(method: str, params: Answer) -> Answer:
    if method == "ping":
        return {}
    if method != "initialize":
        raise JsonRpcError(
            METHOD_NOT_FOUND,
            f"the method {method[:100]!r} is not supported; use tools/list and tools/call",
        )
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
