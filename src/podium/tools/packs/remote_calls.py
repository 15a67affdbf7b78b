"""Tools behind an HTTP endpoint or an MCP server: arguments and key go there, a JSON object comes back.

Whoever answers is not trusted: answers are bounded and checked."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from podium.core.errors import OutcomeUnknown, ToolBroke
from podium.core.model import Json
from podium.core.processes import ProcessLimits, ProcessSpec
from podium.platform.completion import run_to_completion
from podium.ports import Process
from podium.tools.packs.handlers import SETTING, HttpHandler, McpHandler
from podium.tools.scope import ToolScope

MAX_ANSWER = 1_000_000
_MAX_EXCERPT_CHARACTERS = 500


def json_object(text: bytes | str, who: str) -> dict[str, Json]:
    """The JSON object in an answer. Raises `ToolBroke`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ToolBroke(f"{who} did not answer with JSON: {excerpt(text)!r}") from None
    if not isinstance(value, dict):
        raise ToolBroke(f"{who} did not answer with a JSON object: {excerpt(text)!r}")
    return value


def excerpt(text: bytes | str) -> str:
    """The beginning of it, for a sentence."""
    whole = text.decode(errors="replace") if isinstance(text, bytes) else text
    plain = " ".join(whole.split())
    return plain if len(plain) <= _MAX_EXCERPT_CHARACTERS else plain[:_MAX_EXCERPT_CHARACTERS] + "…"


def complaint(text: bytes) -> str:
    """Return the reason in an answer: its `error` or `message`, or else its beginning."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return excerpt(text)
    if isinstance(value, dict):
        reason = value.get("error") or value.get("message") or value.get("detail")
        reason = reason.get("message") if isinstance(reason, dict) else reason
        if isinstance(reason, str) and reason:
            return excerpt(reason)
    return excerpt(text)


def filled(text: str, settings: Mapping[str, str]) -> str:
    """The text with its settings. Raises `ToolBroke` for one that has no value."""
    for name in SETTING.findall(text):
        if not settings.get(name):
            raise ToolBroke(f"{name} is not set; give it a value in the environment")
    return SETTING.sub(lambda match: settings[match[1]], text)


_MAX_REDIRECTS = 3
_SAME_REQUEST_AGAIN = (307, 308)
"""Redirects after which a request is sent as it was. All others would make it another one."""


class PackHttpResponse(NamedTuple):
    """A response, whole."""

    status: int
    location: str
    body: bytes


async def call_http(
    handler: HttpHandler,
    arguments: dict[str, Json],
    scope: ToolScope,
    settings: Mapping[str, str],
) -> dict[str, Json]:
    """The endpoint's answer. Raises `OutcomeUnknown` when the call may have happened, else `ToolBroke`."""
    url = filled(handler.url, settings)
    headers = {
        name: scope.reveal(filled(value, settings)) for name, value in handler.headers.items()
    }
    headers |= {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Idempotency-Key": scope.key,
    }
    body = json.dumps({"arguments": arguments, "key": scope.key}).encode()
    try:
        async with asyncio.timeout(handler.timeout):
            answer = await _exchanged(handler.method, url, headers, body, handler.timeout)
    except TimeoutError:
        raise OutcomeUnknown(
            f"{_named(url)} did not answer within {handler.timeout:g} s; it is unknown whether it acted"
        ) from None
    if not 200 <= answer.status < 300:
        raise ToolBroke(f"{_named(url)} answered {answer.status}: {complaint(answer.body)}")
    return json_object(answer.body, _named(url))


async def _exchanged(
    method: str, url: str, headers: Mapping[str, str], body: bytes, timeout_seconds: float
) -> PackHttpResponse:
    """The answer at the end of all redirects, none of which may lead to another host."""
    first = _checked(url)
    for _ in range(_MAX_REDIRECTS + 1):
        line = _HttpExchange(_checked(url), timeout_seconds)
        answer = await line.exchange(method, headers, body)
        if answer.status not in _SAME_REQUEST_AGAIN:
            return answer
        url = urljoin(url, answer.location)
        if (urlsplit(url).scheme, urlsplit(url).netloc) != (first.scheme, first.netloc):
            raise ToolBroke(
                f"{_named(first.geturl())} redirects to another host; nothing was sent there"
            )
    raise ToolBroke(f"{_named(first.geturl())} redirects too often; the request was stopped")


class _HttpExchange:
    """One request over one connection, in a thread that ends when the call does."""

    def __init__(self, url: SplitResult, timeout_seconds: float) -> None:
        self._url = url
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        try:
            self._connection = kind(url.hostname or "", url.port, timeout=timeout_seconds)
        except (ValueError, HTTPException):
            raise ToolBroke(
                f"{_named(url.geturl())} is not a valid URL; correct the registry or its setting"
            ) from None

    async def exchange(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> PackHttpResponse:
        working = asyncio.ensure_future(asyncio.to_thread(self._exchange, method, headers, body))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            self._hang_up()
            with suppress(ToolBroke):
                await run_to_completion(working)
            raise
        finally:
            self._connection.close()

    def _hang_up(self) -> None:
        """Make the thread's reading end."""
        held = self._connection.sock
        if isinstance(held, socket.socket):
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)

    def _exchange(self, method: str, headers: Mapping[str, str], body: bytes) -> PackHttpResponse:
        named = _named(self._url.geturl())
        target = self._url._replace(scheme="", netloc="", fragment="").geturl() or "/"
        try:
            self._connection.connect()
        except (OSError, UnicodeError) as error:
            raise ToolBroke(
                f"{named} cannot be reached, so nothing was done: {_why(error)}"
            ) from None
        try:
            self._connection.request(method, target, body, dict(headers))
        except ValueError:
            # The words of this error quote the header, which may hold a secret.
            raise ToolBroke(
                f"a header for {named} contains characters that are not allowed in headers; nothing was sent"
            ) from None
        except OSError as error:
            raise OutcomeUnknown(
                f"{named} closed the connection; it is unknown whether it acted: {_why(error)}"
            ) from None
        return self._answer(named)

    def _answer(self, named: str) -> PackHttpResponse:
        try:
            # What is not read to its end would else keep the connection open.
            with self._connection.getresponse() as response:
                body = response.read(MAX_ANSWER + 1)
        except (OSError, HTTPException, ValueError) as error:
            problem = f"sent an incomplete answer, so it is unknown whether it acted: {_why(error)}"
            raise OutcomeUnknown(f"{named} {problem}") from None
        if len(body) > MAX_ANSWER:
            raise ToolBroke(f"{named} answered with more than {MAX_ANSWER} bytes; it has acted")
        return PackHttpResponse(response.status, response.getheader("Location") or "", body)


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and not parts.username
    except ValueError:
        sound = None
    if not sound or any(character.isspace() or ord(character) < 32 for character in url):
        raise ToolBroke(f"{_named(url)} is not an HTTP URL; correct the registry or its setting")
    return parts


def _named(url: str) -> str:
    """The address without query and login, which may hold secrets."""
    return repr(url.partition("?")[0].rpartition("@")[2])


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


PROTOCOL = "2025-06-18"
_FAREWELL_SECONDS = 2.0
_CALL = "tools/call"
_MAX_LINES = 10_000
"""Limit on lines of a server beside its answer."""
_METHOD_NOT_FOUND = -32601


async def call_mcp(
    handler: McpHandler,
    arguments: dict[str, Json],
    scope: ToolScope,
    settings: Mapping[str, str],
    folder: Path,
) -> dict[str, Json]:
    """Call a tool of the server. Raises `ToolBroke`. On return the server is gone."""
    env = {name: scope.reveal(filled(value, settings)) for name, value in handler.env.items()}
    with TemporaryDirectory(prefix="podium-pack-") as empty:
        spawn = ProcessSpec(
            argv=tuple(filled(argument, settings) for argument in handler.command),
            cwd=str(folder),
            env={**env, **_source_alone(empty)},
            interactive=True,
            limits=ProcessLimits(seconds=scope.timeout_seconds, line_bytes=2 * MAX_ANSWER),
        )
        return await _called(spawn, handler.tool, arguments, scope)


def _source_alone(empty: str) -> dict[str, str]:
    """Variables by which Python neither takes compiled code from a pack's folder nor puts any there."""
    return {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": empty}


async def _called(
    spawn: ProcessSpec, tool: str, arguments: dict[str, Json], scope: ToolScope
) -> dict[str, Json]:
    async with _started(spawn, scope) as process:
        session = _McpSession(process, scope)
        await session.ask("initialize", _introduction())
        await session.notify("notifications/initialized")
        # The key lets a server do a repeated call once, as `Idempotency-Key` does over HTTP.
        asked = {"name": tool, "arguments": arguments, "_meta": {"podium/key": scope.key}}
        answer = await session.ask(_CALL, asked)
    return _result(answer, tool)


@asynccontextmanager
async def _started(spawn: ProcessSpec, scope: ToolScope) -> AsyncIterator[Process]:
    process = await scope.launcher.start(spawn)
    try:
        yield process
    finally:
        await run_to_completion(_ended(process))


async def _ended(process: Process) -> None:
    """The protocol's own way to end: the input closes, and the server leaves."""
    process.close_input()
    with suppress(TimeoutError):
        async with asyncio.timeout(_FAREWELL_SECONDS):
            await process.wait()
    await process.end(_FAREWELL_SECONDS)


def _introduction() -> dict[str, Json]:
    from podium import __version__

    client = {"name": "podium", "version": __version__}
    return {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}


class _McpSession:
    """Questions to the server, one after the other."""

    def __init__(self, process: Process, scope: ToolScope) -> None:
        self._process = process
        self._scope = scope
        self._lines = process.lines()
        self._last = 0

    async def ask(self, method: str, params: dict[str, Json]) -> Json:
        """The result of a question. Raises `ToolBroke` when it is an error, or none comes."""
        self._last += 1
        await self._send({"id": self._last, "method": method, "params": params})
        line_count = 0
        async for line in self._lines:
            message = _message(line)
            if "method" in message:
                await self._answer(message)
            elif message.get("id") == self._last:
                return _outcome(method, message)
            line_count += 1
            if line_count > _MAX_LINES:
                raise ToolBroke(
                    f"the MCP server sent {_MAX_LINES} lines without answering {method!r}; it was stopped"
                )
        problem = await self._describe_end(method)
        raise OutcomeUnknown(problem) if method == _CALL else ToolBroke(problem)

    async def notify(self, method: str) -> None:
        await self._send({"method": method})

    async def _answer(self, message: dict[str, Any]) -> None:
        """The server may ask whether we are there. Everything else that it may want, it does not get."""
        if "id" not in message:
            return
        if message["method"] == "ping":
            await self._send({"id": message["id"], "result": {}})
            return
        error = {"code": _METHOD_NOT_FOUND, "message": "Podium offers no methods to servers"}
        await self._send({"id": message["id"], "error": error})

    async def _send(self, message: dict[str, Any]) -> None:
        await self._process.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _describe_end(self, method: str) -> str:
        ended = await self._process.wait()
        if ended.timed_out:
            return (
                f"the MCP server did not answer {method!r} in time; it is unknown whether it acted"
            )
        stderr = excerpt(
            self._scope.clean_output(ended.stderr[-2_000:], ended.stderr_dropped_bytes)
        )
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        return (
            f"the MCP server ended ({how}) before it answered {method!r}: {stderr or 'no output'}"
        )


def _message(line: bytes) -> dict[str, Any]:
    """The message in a line; nothing when it holds none. Programs print other things too."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _outcome(method: str, message: dict[str, Any]) -> Json:
    error = message.get("error")
    if error is not None:
        reason = error.get("message") if isinstance(error, dict) else error
        raise ToolBroke(f"the MCP server answered {method!r} with an error: {excerpt(str(reason))}")
    return message.get("result")


def _result(answer: Json, tool: str) -> dict[str, Json]:
    """Structured content as it is; else a text that is a JSON object; else the text."""
    if not isinstance(answer, dict):
        raise ToolBroke(f"the MCP server returned no result for {tool!r}")
    content = answer.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    text = "\n".join(texts)
    if answer.get("isError"):
        raise ToolBroke(f"{tool!r} of the MCP server failed: {excerpt(text) or 'no message'}")
    structured = answer.get("structuredContent")
    if len(text) > MAX_ANSWER or len(json.dumps(structured)) > MAX_ANSWER:
        raise ToolBroke(f"{tool!r} answered with more than {MAX_ANSWER} bytes; it has acted")
    if isinstance(structured, dict):
        return structured
    parsed = _message(text.encode(errors="replace"))
    return parsed or {"text": text}
