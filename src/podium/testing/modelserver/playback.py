"""Playback of one step to one client: slow, cut or broken as the script says, with the tools that the request offers.

Every program names them in its own way; a script that says `run:` drives them all.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from podium.testing.modelserver.dialects import Dialect, DialectFailure
from podium.testing.modelserver.http_server import Response
from podium.testing.modelserver.messages import (
    Ask,
    OfferedTool,
    ServedAnswer,
    ServedCall,
    ServedEvent,
    StreamedText,
    Tokens,
    filled,
    json_bytes,
    table,
)
from podium.testing.modelserver.script import FileWrite, ScriptStep

SHELLS = (
    "run_shell_command",
    "exec_command",
    "shell_command",
    "shell",
    "Bash",
    "bash",
    "run_command",
)
WRITERS = ("write_file", "Write", "write", "apply_patch")
ANSWERERS = ("StructuredOutput", "structured_output")
"""Claude Code takes an answer that follows a schema by a tool of its own."""
READERS = ("read_file", "Read", "read")
COMMAND_KEYS = ("command", "cmd", "script")
PATH_KEYS = ("file_path", "filePath", "path", "absolute_path", "filename")


def step_text(step: ScriptStep, offered: Sequence[OfferedTool]) -> str:
    """The text of a step, with its payload where no tool takes that."""
    if step.payload is None or _find(ANSWERERS, offered) is not None:
        return step.text
    payload = json.dumps(step.payload, ensure_ascii=False)
    return f"{step.text}\n{payload}" if step.text else payload


class NotOffered(Exception):
    """The request offers no tool for what the step wants. The message is for the transcript."""


def calls_of(step: ScriptStep, offered: Sequence[OfferedTool]) -> list[ServedCall]:
    """The calls of a step. Raises `NotOffered`."""
    calls = [_named(call.name, call.arguments, offered) for call in step.tools]
    if step.custom_tool is not None:
        custom_tool = _find((step.custom_tool.name,), offered)
        space = custom_tool.namespace if custom_tool else ""
        calls.append(
            ServedCall(step.custom_tool.name, input=step.custom_tool.input, namespace=space)
        )
    if step.run is not None:
        calls.append(_run(step.run, offered))
    if step.write is not None:
        calls.append(_write(step.write, offered))
    if step.read is not None:
        calls.append(_read(step.read, offered))
    if step.payload is not None and (tool := _find(ANSWERERS, offered)) is not None:
        properties = _properties(tool)
        calls.append(
            _call(tool, {key: value for key, value in step.payload.items() if key in properties})
        )
    if calls and not offered:
        raise NotOffered("this request offers no tools at all")
    return calls


def _named(name: str, arguments: Mapping[str, Any], offered: Sequence[OfferedTool]) -> ServedCall:
    """A call by its own name, offered or not: what a model makes up is a test too."""
    tool = next((tool for tool in offered if tool.name == name), None)
    return ServedCall(name, arguments, namespace=tool.namespace if tool else "")


def _run(command: str, offered: Sequence[OfferedTool]) -> ServedCall:
    if _find(SHELLS, offered) is None and (composer := _composer(offered)):
        return _composed(composer, "exec_command", {"cmd": command})
    tool = _required_tool("runs a shell command", SHELLS, offered)
    key = _key(tool, COMMAND_KEYS)
    takes_list = table(_properties(tool).get(key)).get("type") == "array"
    argument: Any = ["bash", "-lc", command] if takes_list else command
    return _call(tool, {key: argument})


def _write(file: FileWrite, offered: Sequence[OfferedTool]) -> ServedCall:
    if _find(WRITERS, offered) is None and (composer := _composer(offered)):
        return _composed(composer, "apply_patch", _added_file(file))
    tool = _required_tool("writes a file", WRITERS, offered)
    if tool.name != "apply_patch":
        return _call(tool, {_key(tool, PATH_KEYS): file.path, "content": file.content})
    patch = _added_file(file)
    if tool.custom:
        return ServedCall(tool.name, input=patch, namespace=tool.namespace)
    return _call(tool, {_key(tool, ("input", "patch")): patch})


def _read(path: str, offered: Sequence[OfferedTool]) -> ServedCall:
    reader = _find(READERS, offered)
    if reader is None and (_find(SHELLS, offered) or _composer(offered)):
        # codex has no tool for this and reads through its shell.
        return _run(f"cat -- {shlex.quote(path)}", offered)
    tool = reader or _required_tool("reads a file", READERS, offered)
    return _call(tool, {_key(tool, PATH_KEYS): path})


def _composer(offered: Sequence[OfferedTool]) -> OfferedTool | None:
    """Find codex's tool that runs JavaScript, which calls the others; newer models get only this one."""
    return next((tool for tool in offered if tool.custom and tool.name == "exec"), None)


def _composed(composer: OfferedTool, inner: str, argument: Any) -> ServedCall:
    code = f"text(await tools.{inner}({json.dumps(argument)}));"
    return ServedCall(composer.name, input=code, namespace=composer.namespace)


def _added_file(file: FileWrite) -> str:
    lines = "".join(f"+{line}\n" for line in file.content.splitlines())
    return f"*** Begin Patch\n*** Add File: {file.path}\n{lines}*** End Patch\n"


def _required_tool(what: str, names: Sequence[str], offered: Sequence[OfferedTool]) -> OfferedTool:
    tool = _find(names, offered)
    if tool is None:
        there = ", ".join(tool.name for tool in offered) or "none"
        raise NotOffered(f"this request offers no tool that {what}; offered: {there}")
    return tool


def _find(names: Sequence[str], offered: Sequence[OfferedTool]) -> OfferedTool | None:
    """By its own name, else as the tail that programs give to tools of MCP servers."""
    exact = {tool.name: tool for tool in reversed(offered)}
    for name in names:
        if name in exact:
            return exact[name]
    for name in names:
        for tool in offered:
            if tool.name.endswith(f"_{name}"):
                return tool
    return None


def _properties(tool: OfferedTool) -> Mapping[str, Any]:
    return table(tool.schema.get("properties"))


def _key(tool: OfferedTool, keys: Sequence[str]) -> str:
    """The name this tool has for an argument."""
    return next((key for key in keys if key in _properties(tool)), keys[0])


def _call(tool: OfferedTool, arguments: dict[str, Any]) -> ServedCall:
    """The call, with text for what else the tool insists on, such as a description."""
    required = tool.schema.get("required")
    for key in required if isinstance(required, list) else []:
        if isinstance(key, str) and key not in arguments:
            kind = str(table(_properties(tool).get(key)).get("type", "string")).lower()
            arguments[key] = _FILLERS.get(kind, "as the script says")
    return ServedCall(tool.name, arguments, namespace=tool.namespace)


_FILLERS: dict[str, Any] = {
    "boolean": False,
    "integer": 1,
    "number": 1,
    "array": [],
    "object": {},
}


JSON = {"Content-Type": "application/json; charset=UTF-8"}
STREAM = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
GARBAGE = b"\x00\x01<html><body>502 Bad Gateway</body></html>\nid\x7f: : :\n\ndata\n\n"
BROKEN_JSON = b'{"candidates":[{"content": {"parts": [{"text": "cut'
BREAK_SECONDS = 0.02

Gone = Callable[[], Awaitable[None]]


class Performance:
    """One step played to one client."""

    def __init__(
        self, step: ScriptStep, ask: Ask, dialect: Dialect, response: Response, gone: Gone
    ) -> None:
        """`gone` waits until the client has closed its side."""
        self._step = step
        self._ask = ask
        self._dialect = dialect
        self._response = response
        self._gone = gone

    async def play(self) -> None:
        await asyncio.sleep(self._step.delay_seconds)
        if self._step.fault == "hang":
            await self._gone()
            self._response.drop()
        elif self._step.fault == "drop_before_headers":
            self._response.drop()
        elif failure := self._failure():
            await send_failure(self._response, failure, self._step.headers)
        elif self._ask.streamed and self._ask.event_stream:
            await self._stream()
        else:
            await self._whole()

    def _failure(self) -> DialectFailure | None:
        """The error to answer with. Inside a stream it is the stream's to tell."""
        step, dialect = self._step, self._dialect
        match step.fault:
            case "context_overflow":
                failure = dialect.overflow()
                return None if failure.event and self._ask.streamed else failure
            case "bad_key":
                return dialect.bad_key()
            case "error_event" if not self._ask.streamed:
                return dialect.failure(step.status or 500, step.message, step.retry_after)
            case None if step.status is not None:
                return dialect.failure(step.status, step.message, step.retry_after)
        return None

    async def _whole(self) -> None:
        answer = answer_of(self._step, self._ask)
        parts = filled(self._dialect.whole(self._ask, answer), answer.text)
        fault = self._step.fault
        if fault == "invalid_stream":
            parts = iter([GARBAGE])
        if fault in ("truncate", "invalid_json", "drop"):
            parts = _first_half(parts)
        if self._ask.streamed:
            parts = chain([b"["], parts, [b"]"])
        headers = {**JSON, **self._step.headers}
        begun, rest = _begun(parts)
        if rest is None and fault != "drop":
            await self._response.whole(200, begun, headers)
            return
        await self._response.start(200, headers)
        for part in chain([begun], rest or ()):
            await self._response.send(part)
        await self._end()

    async def _stream(self) -> None:
        await self._response.start(200, {**STREAM, **self._step.headers})
        first = True
        for event in self._events():
            if not first:
                await asyncio.sleep(self._step.drip_seconds)
            first = False
            for part in event:
                await self._response.send(part)
        if self._step.fault in _BREAKING:
            # What went well is read first: Gemini's clients know an error only when it comes alone.
            await asyncio.sleep(BREAK_SECONDS)
            for part in self._breaking():
                await self._response.send(part)
        await self._end()

    async def _end(self) -> None:
        if self._step.fault == "drop":
            self._response.drop()
        else:
            await self._response.finish()

    def _events(self) -> Iterator[Iterator[bytes]]:
        """The bytes of every event; those of a broken stream, up to where it breaks."""
        fault, spoken = self._step.fault, False
        for event in self._dialect.events(self._ask, answer_of(self._step, self._ask)):
            if (event.final and fault in ("truncate", *_BREAKING)) or (
                spoken and fault in _BREAKING
            ):
                return
            yield event_bytes(event, self._dialect.line_end)
            # Most break within the text; a prompt that is too long is told before any.
            spoken = spoken or bool(event.text) or fault == "context_overflow"

    def _breaking(self) -> Iterator[bytes]:
        match self._step.fault:
            case "invalid_stream":
                return iter([GARBAGE])
            case "invalid_json":
                return iter([b"data: " + BROKEN_JSON + self._dialect.line_end * 2])
            case "error_event":
                status = self._step.status or 500
                return event_bytes(
                    self._dialect.error_event(status, self._step.message), self._dialect.line_end
                )
            case "context_overflow":
                event = self._dialect.overflow().event
                return event_bytes(event, self._dialect.line_end) if event else iter(())
        return iter(())


_BREAKING = ("drop", "invalid_stream", "invalid_json", "error_event", "context_overflow")
_WRITE_BYTES = 64 * 1024


def event_bytes(event: ServedEvent, line_end: bytes) -> Iterator[bytes]:
    """The event as a stream writes it. A large one comes in pieces."""
    if event.bare:
        yield json_bytes(event.data)
        return
    name = f"event: {event.name}".encode() + line_end if event.name else b""
    if isinstance(event.data, str):
        yield name + b"data: " + event.data.encode() + line_end * 2
        return
    parts = filled(event.data, event.text)
    # Small events go out in one piece, as one write and one chunk.
    held = name + b"data: " + next(parts)
    for part in parts:
        if len(held) + len(part) > _WRITE_BYTES:
            yield held
            held = b""
        held += part
    yield held + line_end * 2


def answer_of(step: ScriptStep, ask: Ask) -> ServedAnswer:
    """Build the answer of a step; it explains itself if a tool is not offered."""
    try:
        calls, text = tuple(calls_of(step, ask.tools)), step_text(step, ask.tools)
    except NotOffered as missing:
        calls, text = (), f"The model server's script cannot continue: {missing}."
    flood = step.flood_bytes or 0
    text_pieces = StreamedText(
        text=step.then if flood else text,
        chunk_characters=step.chunk_characters,
        flood_bytes=flood,
        invalid=step.fault == "invalid_utf8",
    )
    characters = (
        text_pieces.characters
        + len(step.thinking)
        + sum(len(call.arguments_json) for call in calls)
    )
    tokens = Tokens(
        input=ask.input_characters // 4 if step.usage.input is None else step.usage.input,
        output=max(1, characters // 4) if step.usage.output is None else step.usage.output,
        cached=step.usage.cached,
    )
    return ServedAnswer(text_pieces, tokens, step.thinking, calls, step.finish)


async def send_failure(
    response: Response, failure: DialectFailure, headers: dict[str, str] | None = None
) -> None:
    """Answer with an error in the protocol's own text."""
    every = {**JSON, **failure.headers, **(headers or {})}
    await response.whole(failure.status, json_bytes(failure.body), every)


def _begun(parts: Iterator[bytes]) -> tuple[bytes, Iterator[bytes] | None]:
    """The first bytes, and the parts behind them. None: that was all."""
    held = bytearray()
    for part in parts:
        held += part
        if len(held) > _WRITE_BYTES:
            return bytes(held), parts
    return bytes(held), None


def _first_half(parts: Iterator[bytes]) -> Iterator[bytes]:
    """All but the last part, and half of that one: JSON that never ends."""
    held: bytes | None = None
    for part in parts:
        if held is not None:
            yield held
        held = part
    if held is not None:
        yield held[: len(held) // 2]
