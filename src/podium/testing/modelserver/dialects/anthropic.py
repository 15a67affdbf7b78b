"""Anthropic's Messages."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from podium.testing.modelserver.dialects.dialect import DialectFailure, retry_headers
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

_FINISH = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "safety": "refusal"}
_STATUS = {
    400: ("invalid_request_error", "The request is invalid."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use this model."),
    404: ("not_found_error", "The model was not found."),
    413: ("request_too_large", "Request exceeds the maximum size."),
    429: ("rate_limit_error", "This request would exceed your rate limit."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}


class AnthropicDialect:
    """`POST /v1/messages`."""

    name: ProtocolName = "anthropic"
    line_end = b"\n"

    def refusal(self, body: Mapping[str, Any]) -> str:
        for key, fits in (
            ("model", bool(as_text(body.get("model")))),
            ("messages", bool(tables(body.get("messages")))),
            ("max_tokens", isinstance(body.get("max_tokens"), int)),
        ):
            if not fits:
                return f"{key}: Field required"
        return ""

    def ask(self, body: Mapping[str, Any], *, size: int) -> Ask:
        return Ask(
            protocol=self.name,
            model=as_text(body.get("model")),
            streamed=body.get("stream") is True,
            conversation=tuple(_conversation(body)),
            tools=tuple(
                OfferedTool(
                    as_text(tool.get("name")),
                    table(tool.get("input_schema")),
                    description=as_text(tool.get("description")),
                )
                for tool in tables(body.get("tools"))
            ),
            input_characters=size,
        )

    def whole(self, ask: Ask, answer: ServedAnswer) -> Mapping[str, Any]:
        content = [_finished(block) for block in _blocks(answer)]
        message = {**_message(ask, answer), "content": content, "stop_reason": _stop(answer)}
        message["usage"] = {**message["usage"], "output_tokens": answer.tokens.output}
        return message

    def events(self, ask: Ask, answer: ServedAnswer) -> Iterator[ServedEvent]:
        yield _event("message_start", message=_message(ask, answer))
        yield _event("ping")
        for index, block in enumerate(_blocks(answer)):
            yield from _block_events(index, block, answer)
        delta = {"stop_reason": _stop(answer), "stop_sequence": None}
        usage = {"output_tokens": answer.tokens.output}
        yield _event("message_delta", final=True, delta=delta, usage=usage)
        yield _event("message_stop", final=True)

    def still_waiting(self, ask: Ask) -> ServedEvent:
        return _event("ping")

    def failure(
        self, status: int, message: str = "", retry_after: float | None = None
    ) -> DialectFailure:
        kind, default = _STATUS.get(status, ("api_error", "The request failed."))
        request_id = f"req_{secrets.token_hex(12)}"
        error = {"type": kind, "message": message or default}
        body = {"type": "error", "error": error, "request_id": request_id}
        return DialectFailure(
            status, body, {"request-id": request_id, **retry_headers(retry_after)}
        )

    def error_event(self, status: int, message: str = "") -> ServedEvent:
        return ServedEvent(self.failure(status, message).body, name="error", final=True)

    def overflow(self) -> DialectFailure:
        return self.failure(400, "prompt is too long: 250000 tokens > 200000 maximum")

    def bad_key(self) -> DialectFailure:
        return self.failure(401)


def _conversation(body: Mapping[str, Any]) -> Iterator[ConversationItem]:
    for message in tables(body.get("messages")):
        if message.get("role") == "assistant":
            yield ConversationItem("answer")
        if message.get("role") != "user":
            continue
        content = message.get("content")
        results = sum(part.get("type") == "tool_result" for part in tables(content))
        yield from user_items(texts_of(content), results)


def _event(name: str, *, final: bool = False, **fields: Any) -> ServedEvent:
    return ServedEvent({"type": name, **fields}, name=name, final=final)


def _message(ask: Ask, answer: ServedAnswer) -> dict[str, Any]:
    """The message before anything is said. Cached tokens do not count as input here."""
    tokens = answer.tokens
    usage = {
        "input_tokens": max(0, tokens.input - tokens.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": 1,
    }
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _stop(answer: ServedAnswer) -> str:
    return "tool_use" if answer.calls and answer.finish == "stop" else _FINISH[answer.finish]


def _blocks(answer: ServedAnswer) -> Iterator[dict[str, Any]]:
    """The content blocks as a stream begins them; a call carries its input beside."""
    if answer.thinking:
        yield {"type": "thinking", "thinking": answer.thinking}
    if answer.text:
        yield {"type": "text", "text": TEXT_SLOT}
    for call in answer.calls:
        yield {"type": "tool_use", "call": call}


def _finished(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "thinking":
        return {**block, "signature": _SIGNATURE}
    return _tool_use(block["call"], block["call"].as_function) if "call" in block else {**block}


def _block_events(
    index: int, block: Mapping[str, Any], answer: ServedAnswer
) -> Iterator[ServedEvent]:
    match block["type"]:
        case "thinking":
            started = {"type": "thinking", "thinking": "", "signature": ""}
            yield _event("content_block_start", index=index, content_block=started)
            yield _delta(index, type="thinking_delta", thinking=answer.thinking)
            yield _delta(index, type="signature_delta", signature=_SIGNATURE)
        case "text":
            started = {"type": "text", "text": ""}
            yield _event("content_block_start", index=index, content_block=started)
            for piece in answer.text.pieces():
                event = _delta(index, type="text_delta", text=TEXT_SLOT)
                yield ServedEvent(event.data, name=event.name, text=(piece,))
        case _:
            call: ServedCall = block["call"]
            yield _event("content_block_start", index=index, content_block=_tool_use(call, {}))
            yield _delta(index, type="input_json_delta", partial_json=call.arguments_json)
    yield _event("content_block_stop", index=index)


def _delta(index: int, **delta: str) -> ServedEvent:
    return _event("content_block_delta", index=index, delta=delta)


def _tool_use(call: ServedCall, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": arguments}


_SIGNATURE = "c2NyaXB0ZWQ="
"""Thinking comes signed; nobody but the provider can check it."""
