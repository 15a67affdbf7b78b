"""Tools of an MCP server, started for the call and spoken to over its standard streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from podium.core.errors import OutcomeUnknown, ToolBroke
from podium.core.model import Json
from podium.core.processes import ProcessLimits, ProcessSpec
from podium.platform.completion import run_to_completion
from podium.ports import Process
from podium.tools.packs.answers import MAX_ANSWER, excerpt
from podium.tools.packs.filling import filled
from podium.tools.packs.handlers import McpHandler
from podium.tools.scope import ToolScope

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
                raise ToolBroke(f"the MCP server talks without answering {method!r}; it was ended")
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
        error = {"code": _METHOD_NOT_FOUND, "message": "Podium offers nothing to servers"}
        await self._send({"id": message["id"], "error": error})

    async def _send(self, message: dict[str, Any]) -> None:
        await self._process.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _describe_end(self, method: str) -> str:
        ended = await self._process.wait()
        if ended.timed_out:
            return f"the MCP server gave no answer to {method!r} in time; whether it acted is not known"
        stderr = excerpt(
            self._scope.clean_output(ended.stderr[-2_000:], ended.stderr_dropped_bytes)
        )
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        return f"the MCP server ended ({how}) before it answered {method!r}: {stderr or 'it said nothing'}"


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
        raise ToolBroke(f"the MCP server gave no result for {tool!r}")
    content = answer.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    text = "\n".join(texts)
    if answer.get("isError"):
        raise ToolBroke(f"{tool!r} of the MCP server failed: {excerpt(text) or 'without words'}")
    structured = answer.get("structuredContent")
    if len(text) > MAX_ANSWER or len(json.dumps(structured)) > MAX_ANSWER:
        raise ToolBroke(f"{tool!r} answered with more than {MAX_ANSWER} bytes; it has acted")
    if isinstance(structured, dict):
        return structured
    parsed = _message(text.encode(errors="replace"))
    return parsed or {"text": text}
