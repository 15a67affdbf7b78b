"""OpenAI's Responses."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from podium.testing.modelserver.answer import Answer, Event
from podium.testing.modelserver.ask import (
    Ask,
    OfferedTool,
    Said,
    table,
    tables,
    texts_of,
    user_said,
    word,
)
from podium.testing.modelserver.dialects import openai_errors
from podium.testing.modelserver.dialects.dialect import Failure
from podium.testing.modelserver.dialects.responses_items import item_events, items
from podium.testing.modelserver.script import ProtocolName

_RESULTS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "mcp_tool_call_output",
)
_INCOMPLETE = {"length": "max_output_tokens", "safety": "content_filter"}

FLOOD_MESSAGE_BYTES = 1_000_000


class ResponsesDialect:
    """`POST /v1/responses`."""

    name: ProtocolName = "responses"
    line_end = b"\n"

    def refusal(self, body: Mapping[str, Any]) -> str:
        if not word(body.get("model")):
            return "Missing required parameter: 'model'."
        if not body.get("input"):
            return "Missing required parameter: 'input'."
        return ""

    def ask(self, body: Mapping[str, Any], *, size: int) -> Ask:
        return Ask(
            protocol=self.name,
            model=word(body.get("model")),
            streamed=body.get("stream") is True,
            said=tuple(_said(body.get("input"))),
            tools=(*_offered(tables(body.get("tools"))), *_added_tools(body.get("input"))),
            input_characters=size,
        )

    def whole(self, ask: Ask, answer: Answer) -> Mapping[str, Any]:
        return _response(ask, answer, output=list(items(answer)))

    def events(self, ask: Ask, answer: Answer) -> Iterator[Event]:
        """Every event says all again, as the provider does: some clients read the last one only."""
        begun = {**_base(ask), "status": "in_progress"}
        numbers = count()
        yield _numbered(numbers, "response.created", {"response": begun})
        yield _numbered(numbers, "response.in_progress", {"response": begun})
        output: list[dict[str, Any]] = []
        for part in _messages(answer):
            for item in items(part):
                for name, fields, words in item_events(len(output), item, part):
                    yield _numbered(numbers, name, fields, words)
                output.append(item)
        told = [] if answer.words.flood_bytes else output
        done = {**_response(ask, answer, told), "id": begun["id"]}
        name = f"response.{done['status']}"
        yield _numbered(numbers, name, {"response": done}, answer.words.pieces, final=True)

    def still_waiting(self, ask: Ask) -> Event:
        # codex counts its patience by events; a comment is none.
        begun = {**_base(ask), "status": "in_progress"}
        return _numbered(count(), "response.created", {"response": begun})

    def failure(self, status: int, message: str = "", retry_after: float | None = None) -> Failure:
        return openai_errors.failure(status, message, retry_after)

    def error_event(self, status: int, message: str = "") -> Event:
        said = message or str(self.failure(status).body["error"]["message"])
        return _failed(openai_errors.code_of(status), said)

    def overflow(self) -> Failure:
        words = "Your input exceeds the context window of this model. Please adjust your input and try again."
        code = "context_length_exceeded"
        body = openai_errors.error_body(words, code=code, param="input")
        return Failure(400, body, event=_failed(code, words))

    def bad_key(self) -> Failure:
        return self.failure(401)


def _said(given: Any) -> Iterator[Said]:
    if isinstance(given, str):
        yield from user_said([given])
    for item in tables(given):
        kind = item.get("type", "message")
        if kind in _RESULTS:
            yield Said("result")
        elif kind == "message" and item.get("role") == "user":
            yield from user_said(texts_of(item.get("content")))
        elif kind == "message" and item.get("role") == "assistant":
            yield Said("answer")


def _offered(tools: Iterable[Mapping[str, Any]], namespace: str = "") -> Iterator[OfferedTool]:
    for tool in tools:
        name = word(tool.get("name"))
        if tool.get("type") == "namespace":
            yield from _offered(tables(tool.get("tools")), name)
        elif name:
            custom = tool.get("type") == "custom"
            yield OfferedTool(
                name,
                table(tool.get("parameters")),
                custom,
                namespace,
                word(tool.get("description")),
            )


def _added_tools(given: Any) -> Iterator[OfferedTool]:
    """codex tells its newer models of their tools inside the conversation."""
    for item in tables(given):
        if item.get("type") == "additional_tools":
            yield from _offered(tables(item.get("tools")))


def _messages(answer: Answer) -> Iterator[Answer]:
    """The answer; a flood as many messages, and not told again: codex chokes on long events."""
    left = answer.words.flood_bytes
    while left > FLOOD_MESSAGE_BYTES:
        left -= FLOOD_MESSAGE_BYTES
        words = replace(answer.words, text="", flood_bytes=FLOOD_MESSAGE_BYTES)
        yield replace(answer, words=words, thinking="", calls=())
    yield replace(answer, words=replace(answer.words, flood_bytes=left))


def _base(ask: Ask) -> dict[str, Any]:
    return {
        "id": f"resp_{secrets.token_hex(16)}",
        "object": "response",
        "created_at": int(time.time()),
        "model": ask.model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
    }


def _response(ask: Ask, answer: Answer, output: list[dict[str, Any]]) -> dict[str, Any]:
    tokens = answer.tokens
    reason = _INCOMPLETE.get(answer.finish)
    return {
        **_base(ask),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        "usage": {
            "input_tokens": tokens.input,
            "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": 0},
            "output_tokens": tokens.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens.input + tokens.output,
        },
    }


def _numbered(
    numbers: Iterator[int],
    name: str,
    fields: Mapping[str, Any],
    words: Any = None,
    *,
    final: bool = False,
) -> Event:
    data = {"type": name, "sequence_number": next(numbers), **fields}
    return Event(data, name=name, words=words() if words else (), final=final)


def _failed(code: str, message: str) -> Event:
    response: dict[str, Any] = {
        "id": f"resp_{secrets.token_hex(16)}",
        "object": "response",
        "status": "failed",
        "error": {"code": code, "message": message},
        "output": [],
        "usage": None,
    }
    data = {"type": "response.failed", "sequence_number": 99, "response": response}
    return Event(data, name="response.failed", final=True)
