"""OpenAI's Responses: requests, answers, and output items whole and as a stream of events."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from podium.testing.modelserver.dialects import dialect
from podium.testing.modelserver.dialects.dialect import DialectFailure
from podium.testing.modelserver.messages import (
    TEXT_SLOT,
    Ask,
    ConversationItem,
    OfferedTool,
    ServedAnswer,
    ServedCall,
    ServedEvent,
    as_text,
    table,
    tables,
    texts_of,
    user_items,
)
from podium.testing.modelserver.script import ProtocolName

Pieces = Callable[[], Iterable[bytes]] | None
ItemEvent = tuple[str, Mapping[str, Any], Pieces]
"""Name, fields, and what is put where `TEXT_SLOT` stands."""


def items(answer: ServedAnswer) -> Iterator[dict[str, Any]]:
    """Each item as it is when it is done."""
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        yield {"type": "reasoning", "id": _new("rs"), "summary": summary}
    if answer.text or not answer.calls:
        yield {
            "type": "message",
            "id": _new("msg"),
            "role": "assistant",
            "status": "completed",
            "content": [_part(answer)],
        }
    for call in answer.calls:
        yield _call_item(call)


def item_events(index: int, item: dict[str, Any], answer: ServedAnswer) -> Iterator[ItemEvent]:
    """List the stream events of one item."""
    inner, begun = _INNER[item["type"]], _begun(item)
    yield "response.output_item.added", {"output_index": index, "item": begun}, None
    position = {"item_id": item["id"], "output_index": index}
    yield from inner(position, item, answer)
    pieces = answer.text.pieces if item["type"] == "message" else None
    yield "response.output_item.done", {"output_index": index, "item": item}, pieces


def _new(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


def _part(answer: ServedAnswer, text: str = TEXT_SLOT) -> dict[str, Any]:
    if answer.finish == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(call: ServedCall) -> dict[str, Any]:
    item = {"call_id": f"call_{call.id}", "name": call.name, "status": "completed"}
    if call.namespace:
        item["namespace"] = call.namespace
    if call.input is not None:
        return {"type": "custom_tool_call", "id": _new("ctc"), "input": call.input, **item}
    arguments = call.arguments_json
    return {"type": "function_call", "id": _new("fc"), "arguments": arguments, **item}


def _begun(item: Mapping[str, Any]) -> dict[str, Any]:
    emptied: dict[str, Any] = {
        "reasoning": {"summary": []},
        "message": {"content": [], "status": "in_progress"},
        "function_call": {"arguments": "", "status": "in_progress"},
        "custom_tool_call": {"input": "", "status": "in_progress"},
    }
    return {**item, **emptied[item["type"]]}


def _message_events(
    position: Mapping[str, Any], _: Any, answer: ServedAnswer
) -> Iterator[ItemEvent]:
    position = {**position, "content_index": 0}
    key = "refusal" if answer.finish == "refusal" else "output_text"
    yield "response.content_part.added", {**position, "part": _part(answer, "")}, None
    for piece in answer.text.pieces():
        fields = {**position, "delta": TEXT_SLOT, "logprobs": []}
        yield f"response.{key}.delta", fields, partial(iter, (piece,))
    text = {"refusal": TEXT_SLOT} if key == "refusal" else {"text": TEXT_SLOT, "logprobs": []}
    yield f"response.{key}.done", {**position, **text}, answer.text.pieces
    yield "response.content_part.done", {**position, "part": _part(answer)}, answer.text.pieces


def _reasoning_events(
    position: Mapping[str, Any], _: Any, answer: ServedAnswer
) -> Iterator[ItemEvent]:
    position = {**position, "summary_index": 0}
    part = {"type": "summary_text", "text": answer.thinking}
    prefix = "response.reasoning_summary"
    yield f"{prefix}_part.added", {**position, "part": {**part, "text": ""}}, None
    yield f"{prefix}_text.delta", {**position, "delta": answer.thinking}, None
    yield f"{prefix}_text.done", {**position, "text": answer.thinking}, None
    yield f"{prefix}_part.done", {**position, "part": part}, None


def _function_events(
    position: Mapping[str, Any], item: Mapping[str, Any], _: ServedAnswer
) -> Iterator[ItemEvent]:
    name, arguments = "response.function_call_arguments", item["arguments"]
    yield f"{name}.delta", {**position, "delta": arguments}, None
    yield f"{name}.done", {**position, "name": item["name"], "arguments": arguments}, None


def _custom_events(
    position: Mapping[str, Any], item: Mapping[str, Any], _: ServedAnswer
) -> Iterator[ItemEvent]:
    name, input_text = "response.custom_tool_call_input", item["input"]
    yield f"{name}.delta", {**position, "delta": input_text}, None
    yield f"{name}.done", {**position, "input": input_text}, None


_INNER: dict[
    str, Callable[[Mapping[str, Any], dict[str, Any], ServedAnswer], Iterator[ItemEvent]]
] = {
    "message": _message_events,
    "reasoning": _reasoning_events,
    "function_call": _function_events,
    "custom_tool_call": _custom_events,
}


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
        if not as_text(body.get("model")):
            return "Missing required parameter: 'model'."
        if not body.get("input"):
            return "Missing required parameter: 'input'."
        return ""

    def ask(self, body: Mapping[str, Any], *, size: int) -> Ask:
        return Ask(
            protocol=self.name,
            model=as_text(body.get("model")),
            streamed=body.get("stream") is True,
            conversation=tuple(_conversation(body.get("input"))),
            tools=(*_offered(tables(body.get("tools"))), *_added_tools(body.get("input"))),
            input_characters=size,
        )

    def whole(self, ask: Ask, answer: ServedAnswer) -> Mapping[str, Any]:
        return _response(ask, answer, output=list(items(answer)))

    def events(self, ask: Ask, answer: ServedAnswer) -> Iterator[ServedEvent]:
        """Every event says all again, as the provider does: some clients read the last one only."""
        begun = {**_base(ask), "status": "in_progress"}
        numbers = count()
        yield _numbered(numbers, "response.created", {"response": begun})
        yield _numbered(numbers, "response.in_progress", {"response": begun})
        output: list[dict[str, Any]] = []
        for part in _messages(answer):
            for item in items(part):
                for name, fields, pieces in item_events(len(output), item, part):
                    yield _numbered(numbers, name, fields, pieces)
                output.append(item)
        final_output = [] if answer.text.flood_bytes else output
        done = {**_response(ask, answer, final_output), "id": begun["id"]}
        name = f"response.{done['status']}"
        yield _numbered(numbers, name, {"response": done}, answer.text.pieces, final=True)

    def still_waiting(self, ask: Ask) -> ServedEvent:
        # codex counts its patience by events; a comment is none.
        begun = {**_base(ask), "status": "in_progress"}
        return _numbered(count(), "response.created", {"response": begun})

    def failure(
        self, status: int, message: str = "", retry_after: float | None = None
    ) -> DialectFailure:
        return dialect.failure(status, message, retry_after)

    def error_event(self, status: int, message: str = "") -> ServedEvent:
        text = message or str(self.failure(status).body["error"]["message"])
        return _failed(dialect.code_of(status), text)

    def overflow(self) -> DialectFailure:
        message = "Your input exceeds the context window of this model. Please adjust your input and try again."
        code = "context_length_exceeded"
        body = dialect.error_body(message, code=code, param="input")
        return DialectFailure(400, body, event=_failed(code, message))

    def bad_key(self) -> DialectFailure:
        return self.failure(401)


def _conversation(conversation: Any) -> Iterator[ConversationItem]:
    if isinstance(conversation, str):
        yield from user_items([conversation])
    for item in tables(conversation):
        kind = item.get("type", "message")
        if kind in _RESULTS:
            yield ConversationItem("result")
        elif kind == "message" and item.get("role") == "user":
            yield from user_items(texts_of(item.get("content")))
        elif kind == "message" and item.get("role") == "assistant":
            yield ConversationItem("answer")


def _offered(tools: Iterable[Mapping[str, Any]], namespace: str = "") -> Iterator[OfferedTool]:
    for tool in tools:
        name = as_text(tool.get("name"))
        if tool.get("type") == "namespace":
            yield from _offered(tables(tool.get("tools")), name)
        elif name:
            custom = tool.get("type") == "custom"
            yield OfferedTool(
                name,
                table(tool.get("parameters")),
                custom,
                namespace,
                as_text(tool.get("description")),
            )


def _added_tools(conversation: Any) -> Iterator[OfferedTool]:
    """codex tells its newer models of their tools inside the conversation."""
    for item in tables(conversation):
        if item.get("type") == "additional_tools":
            yield from _offered(tables(item.get("tools")))


def _messages(answer: ServedAnswer) -> Iterator[ServedAnswer]:
    """The answer; a flood as many messages, and not told again: codex chokes on long events."""
    left = answer.text.flood_bytes
    while left > FLOOD_MESSAGE_BYTES:
        left -= FLOOD_MESSAGE_BYTES
        text = replace(answer.text, text="", flood_bytes=FLOOD_MESSAGE_BYTES)
        yield replace(answer, text=text, thinking="", calls=())
    yield replace(answer, text=replace(answer.text, flood_bytes=left))


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


def _response(ask: Ask, answer: ServedAnswer, output: list[dict[str, Any]]) -> dict[str, Any]:
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
    pieces: Any = None,
    *,
    final: bool = False,
) -> ServedEvent:
    data = {"type": name, "sequence_number": next(numbers), **fields}
    return ServedEvent(data, name=name, text=pieces() if pieces else (), final=final)


def _failed(code: str, message: str) -> ServedEvent:
    response: dict[str, Any] = {
        "id": f"resp_{secrets.token_hex(16)}",
        "object": "response",
        "status": "failed",
        "error": {"code": code, "message": message},
        "output": [],
        "usage": None,
    }
    data = {"type": "response.failed", "sequence_number": 99, "response": response}
    return ServedEvent(data, name="response.failed", final=True)
