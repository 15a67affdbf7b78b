"""The output items of a Responses answer, whole and as the events that build them up."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from podium.testing.modelserver.answer import WORDS, Answer, Call

Pieces = Callable[[], Iterable[bytes]] | None
ItemEvent = tuple[str, Mapping[str, Any], Pieces]
"""Name, fields, and what is put where `WORDS` stands."""


def items(answer: Answer) -> Iterator[dict[str, Any]]:
    """Each item as it is when it is done."""
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        yield {"type": "reasoning", "id": _new("rs"), "summary": summary}
    if answer.words or not answer.calls:
        yield {
            "type": "message",
            "id": _new("msg"),
            "role": "assistant",
            "status": "completed",
            "content": [_part(answer)],
        }
    for call in answer.calls:
        yield _call_item(call)


def item_events(index: int, item: dict[str, Any], answer: Answer) -> Iterator[ItemEvent]:
    """What a stream says from the item's beginning to its end."""
    inner, begun = _INNER[item["type"]], _begun(item)
    yield "response.output_item.added", {"output_index": index, "item": begun}, None
    place = {"item_id": item["id"], "output_index": index}
    yield from inner(place, item, answer)
    words = answer.words.pieces if item["type"] == "message" else None
    yield "response.output_item.done", {"output_index": index, "item": item}, words


def _new(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


def _part(answer: Answer, text: str = WORDS) -> dict[str, Any]:
    if answer.finish == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(call: Call) -> dict[str, Any]:
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


def _message_events(place: Mapping[str, Any], _: Any, answer: Answer) -> Iterator[ItemEvent]:
    place = {**place, "content_index": 0}
    key = "refusal" if answer.finish == "refusal" else "output_text"
    yield "response.content_part.added", {**place, "part": _part(answer, "")}, None
    for piece in answer.words.pieces():
        fields = {**place, "delta": WORDS, "logprobs": []}
        yield f"response.{key}.delta", fields, partial(iter, (piece,))
    text = {"refusal": WORDS} if key == "refusal" else {"text": WORDS, "logprobs": []}
    yield f"response.{key}.done", {**place, **text}, answer.words.pieces
    yield "response.content_part.done", {**place, "part": _part(answer)}, answer.words.pieces


def _reasoning_events(place: Mapping[str, Any], _: Any, answer: Answer) -> Iterator[ItemEvent]:
    place = {**place, "summary_index": 0}
    part = {"type": "summary_text", "text": answer.thinking}
    prefix = "response.reasoning_summary"
    yield f"{prefix}_part.added", {**place, "part": {**part, "text": ""}}, None
    yield f"{prefix}_text.delta", {**place, "delta": answer.thinking}, None
    yield f"{prefix}_text.done", {**place, "text": answer.thinking}, None
    yield f"{prefix}_part.done", {**place, "part": part}, None


def _function_events(
    place: Mapping[str, Any], item: Mapping[str, Any], _: Answer
) -> Iterator[ItemEvent]:
    name, given = "response.function_call_arguments", item["arguments"]
    yield f"{name}.delta", {**place, "delta": given}, None
    yield f"{name}.done", {**place, "name": item["name"], "arguments": given}, None


def _custom_events(
    place: Mapping[str, Any], item: Mapping[str, Any], _: Answer
) -> Iterator[ItemEvent]:
    name, given = "response.custom_tool_call_input", item["input"]
    yield f"{name}.delta", {**place, "delta": given}, None
    yield f"{name}.done", {**place, "input": given}, None


_INNER: dict[str, Callable[[Mapping[str, Any], dict[str, Any], Answer], Iterator[ItemEvent]]] = {
    "message": _message_events,
    "reasoning": _reasoning_events,
    "function_call": _function_events,
    "custom_tool_call": _custom_events,
}
