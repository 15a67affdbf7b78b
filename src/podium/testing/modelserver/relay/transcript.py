"""A request in words that hold for every protocol: instructions, conversation, tools, settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.testing.modelserver.messages import Ask, OfferedTool, as_text, table, tables
from podium.testing.modelserver.script import ProtocolName

MAX_BLOB = 2000
"""Of a part that is no text, such as an image, longer strings are shown by their size alone."""
MAX_DEPTH = 60


@dataclass(frozen=True)
class RelayEntry:
    """One part of the conversation."""

    role: str
    text: str


@dataclass(frozen=True)
class RelayTranscript:
    """Request to the model, in parts."""

    instructions: tuple[str, ...]
    entries: tuple[RelayEntry, ...]
    tools: tuple[OfferedTool, ...]
    settings: Mapping[str, Any]
    """All else in the body, such as the form of an answer."""

    @classmethod
    def of(cls, body: Mapping[str, Any], ask: Ask) -> RelayTranscript:
        entries = list(_READERS[ask.protocol](body))
        handled_keys = _HANDLED_KEYS[ask.protocol]
        return cls(
            instructions=tuple(entry.text for entry in entries if entry.role == "system"),
            entries=tuple(entry for entry in entries if entry.role != "system"),
            tools=ask.tools,
            settings={key: value for key, value in body.items() if key not in handled_keys},
        )


@dataclass(frozen=True)
class Heading:
    """Heading of a transcript."""

    name: str
    ask: Ask
    user_agent: str = ""
    same_as: int | None = None
    common_entries: int = 0
    """So many entries at the beginning are the same as in the request before."""
    earlier: int | None = None


def readable(heading: Heading, transcript: RelayTranscript) -> str:
    """The request as Markdown. Texts stand in fences, so nothing in them looks like a heading of ours."""
    return "\n".join(
        [
            *_top(heading, transcript),
            *_part("System", transcript.instructions),
            *_conversation(heading, transcript.entries),
            *_tools(transcript.tools),
            *_part("Settings", [_pretty(transcript.settings)] if transcript.settings else []),
            *_how_to_answer(heading.name, bool(transcript.tools)),
        ]
    )


def _top(heading: Heading, transcript: RelayTranscript) -> Iterator[str]:
    ask = heading.ask
    sizes = {
        "system": sum(map(len, transcript.instructions)),
        "messages": sum(len(entry.text) for entry in transcript.entries),
        "tools": sum(len(_tool_text(tool)) for tool in transcript.tools),
    }
    yield f"# Request {heading.name}"
    yield ""
    yield f"* protocol: {ask.protocol}, {'streamed' if ask.streamed else 'not streamed'}"
    yield f"* model: {_line(ask.model)}"
    if heading.user_agent:
        yield f"* client: {_line(heading.user_agent)}"
    listing = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    yield f"* size: {ask.input_characters:,} bytes; characters: {listing}"
    if heading.same_as is not None:
        yield f"* same body as request {heading.same_as:04d}"
    yield ""


def _part(title: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield f"## {title} ({sum(map(len, texts)):,} characters)"
        yield ""
        for text in texts:
            yield from _fenced(text)


def _conversation(heading: Heading, entries: Sequence[RelayEntry]) -> Iterator[str]:
    yield f"## Messages ({len(entries)})"
    yield ""
    for number, entry in enumerate(entries, 1):
        if heading.earlier is not None and number == heading.common_entries + 1:
            yield f"## New since request {heading.earlier:04d}"
            yield ""
        yield f"### {number}. {_line(entry.role)} ({len(entry.text):,} characters)"
        yield ""
        yield from _fenced(entry.text)


def _tools(tools: Sequence[OfferedTool]) -> Iterator[str]:
    if not tools:
        yield "## Tools: none"
        yield ""
        return
    yield f"## Tools ({len(tools)})"
    yield ""
    for tool in tools:
        space = f", namespace {_line(tool.namespace)}" if tool.namespace else ""
        yield f"### {_line(tool.name)} ({len(_tool_text(tool)):,} characters{space})"
        yield ""
        yield from _fenced(_tool_text(tool))


def _tool_text(tool: OfferedTool) -> str:
    takes = (
        'plain text: {"input": "…"}' if tool.custom else json.dumps(tool.schema, ensure_ascii=False)
    )
    return "\n".join(part for part in (tool.description, f"arguments: {takes}") if part)


def _how_to_answer(name: str, has_tools: bool) -> Iterator[str]:
    yield "## How to answer"
    yield ""
    calls = ', "calls": [{"name": "…", "arguments": {}}]' if has_tools else ""
    yield f'Write `{{"text": "…"{calls}}}` to `{name}-answer.json`, or plain text to'
    yield f"`{name}-answer.md`: write a draft under another name, then rename it. If an answer is not"
    yield f"valid, `{name}-answer.error` says why, and the request keeps waiting."
    yield ""


def _fenced(text: str) -> Iterator[str]:
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    yield text
    yield fence
    yield ""


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


def _chat(body: Mapping[str, Any]) -> Iterator[RelayEntry]:
    for message in tables(body.get("messages")):
        role = as_text(message.get("role")) or "unknown"
        if role in ("system", "developer"):
            role = "system"
        if role in ("tool", "function"):
            role = (
                f"result of {as_text(message.get('tool_call_id')) or as_text(message.get('name'))}"
            )
        yield from _entry(role, _content(message.get("content")))
        for call in tables(message.get("tool_calls")):
            function = table(call.get("function")) or table(call.get("custom"))
            arguments = function.get("arguments", function.get("input"))
            yield _call(as_text(function.get("name")), as_text(call.get("id")), arguments)


def _anthropic(body: Mapping[str, Any]) -> Iterator[RelayEntry]:
    yield from _entry("system", _content(body.get("system")))
    for message in tables(body.get("messages")):
        role, content = as_text(message.get("role")) or "unknown", message.get("content")
        if isinstance(content, str):
            yield RelayEntry(role, content)
        for block in tables(content):
            match block.get("type"):
                case "tool_use":
                    yield _call(
                        as_text(block.get("name")), as_text(block.get("id")), block.get("input")
                    )
                case "tool_result":
                    error = ", an error" if block.get("is_error") is True else ""
                    whose = f"result of {as_text(block.get('tool_use_id'))}{error}"
                    yield RelayEntry(whose, _content(block.get("content")))
                case _:
                    yield from _entry(role, _content([block]))


def _gemini(body: Mapping[str, Any]) -> Iterator[RelayEntry]:
    instruction = body.get("systemInstruction", body.get("system_instruction"))
    yield from _entry("system", _content(table(instruction).get("parts")))
    for content in tables(body.get("contents")):
        role = as_text(content.get("role")) or "user"
        for part in tables(content.get("parts")):
            call, result = table(part.get("functionCall")), table(part.get("functionResponse"))
            if call:
                yield _call(as_text(call.get("name")), as_text(call.get("id")), call.get("args"))
            elif result:
                yield RelayEntry(
                    f"result of {as_text(result.get('name'))}", _pretty(result.get("response"))
                )
            else:
                yield from _entry(role, _content([part]))


def _responses(body: Mapping[str, Any]) -> Iterator[RelayEntry]:
    yield from _entry("system", as_text(body.get("instructions")))
    if isinstance(body.get("input"), str):
        yield RelayEntry("user", body["input"])
    for item in tables(body.get("input")):
        kind = as_text(item.get("type")) or "message"
        if kind == "message":
            role = as_text(item.get("role")) or "unknown"
            role = "system" if role in ("system", "developer") else role
            yield from _entry(role, _content(item.get("content")))
        elif kind.endswith("_call"):
            arguments = item.get("arguments", item.get("input", item.get("action")))
            yield _call(as_text(item.get("name")) or kind, as_text(item.get("call_id")), arguments)
        elif kind.endswith("_output"):
            yield RelayEntry(
                f"result of {as_text(item.get('call_id'))}", _content(item.get("output"))
            )
        elif kind != "additional_tools":
            yield RelayEntry(kind, _pretty(item))


def _entry(role: str, text: str) -> Iterator[RelayEntry]:
    if text:
        yield RelayEntry(role, text)


def _call(name: str, identity: str, arguments: Any) -> RelayEntry:
    text = arguments if isinstance(arguments, str) else _pretty(arguments)
    return RelayEntry(
        f"call of {_line(name)}" + (f" ({_line(identity)})" if identity else ""), text
    )


def _content(content: Any) -> str:
    """The texts of a message; of other parts what they are."""
    if isinstance(content, str):
        return content
    texts = [as_text(part.get("text")) or _pretty(part) for part in tables(content)]
    return "\n".join(texts) if texts or content in (None, []) else _pretty(content)


def _pretty(value: Any) -> str:
    return json.dumps(_brief(value), ensure_ascii=False, indent=1)


def _brief(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str) and len(value) > MAX_BLOB and " " not in value[:MAX_BLOB]:
        return f"[{len(value):,} characters]"
    if depth >= MAX_DEPTH and isinstance(value, dict | list):
        return "…"
    if isinstance(value, dict):
        return {key: _brief(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_brief(item, depth + 1) for item in value]
    return value


_READERS: dict[ProtocolName, Callable[[Mapping[str, Any]], Iterator[RelayEntry]]] = {
    "chat": _chat,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "responses": _responses,
}
_HANDLED_KEYS: dict[ProtocolName, frozenset[str]] = {
    "chat": frozenset({"model", "messages", "tools", "stream"}),
    "anthropic": frozenset({"model", "messages", "tools", "stream", "system"}),
    "gemini": frozenset({"contents", "tools", "systemInstruction", "system_instruction"}),
    "responses": frozenset({"model", "input", "tools", "stream", "instructions"}),
}
"""Keys of a body that are shown elsewhere."""
