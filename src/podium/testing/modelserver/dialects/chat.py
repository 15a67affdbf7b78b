"""OpenAI's chat completions, which most other providers speak too."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
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

_FINISH = {"stop": "stop", "length": "length", "refusal": "stop", "safety": "content_filter"}


class ChatDialect:
    """`POST /v1/chat/completions`."""

    name: ProtocolName = "chat"
    line_end = b"\n"

    def refusal(self, body: Mapping[str, Any]) -> str:
        if not as_text(body.get("model")):
            return "you must provide a model parameter"
        if not tables(body.get("messages")):
            return "Missing required parameter: 'messages'."
        return ""

    def ask(self, body: Mapping[str, Any], *, size: int) -> Ask:
        return Ask(
            protocol=self.name,
            model=as_text(body.get("model")),
            streamed=body.get("stream") is True,
            conversation=tuple(_conversation(body)),
            tools=tuple(_offered(body)),
            input_characters=size,
            includes_usage=table(body.get("stream_options")).get("include_usage") is True,
        )

    def whole(self, ask: Ask, answer: ServedAnswer) -> Mapping[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        if answer.text:
            message["refusal" if answer.finish == "refusal" else "content"] = TEXT_SLOT
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.calls:
            message["tool_calls"] = [_call(call) for call in answer.calls]
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish(answer),
        }
        return {**_base(ask, "chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def events(self, ask: Ask, answer: ServedAnswer) -> Iterator[ServedEvent]:
        base = _base(ask, "chat.completion.chunk")
        yield _delta(base, {"role": "assistant", "content": ""})
        if answer.thinking:
            yield _delta(base, {"reasoning_content": answer.thinking})
        key = "refusal" if answer.finish == "refusal" else "content"
        for piece in answer.text.pieces():
            yield ServedEvent(_delta(base, {key: TEXT_SLOT}).data, text=(piece,))
        for index, call in enumerate(answer.calls):
            yield _delta(base, {"tool_calls": [{"index": index, **_call(call)}]})
        yield ServedEvent(_delta(base, {}, _finish(answer)).data, final=True)
        if ask.includes_usage:
            yield ServedEvent({**base, "choices": [], "usage": _usage(answer)}, final=True)
        yield ServedEvent("[DONE]", final=True)

    def still_waiting(self, ask: Ask) -> None:
        return None

    def failure(
        self, status: int, message: str = "", retry_after: float | None = None
    ) -> DialectFailure:
        return dialect.failure(status, message, retry_after)

    def error_event(self, status: int, message: str = "") -> ServedEvent:
        return ServedEvent(self.failure(status, message).body, final=True)

    def overflow(self) -> DialectFailure:
        message = (
            "This model's maximum context length is 128000 tokens. However, your messages resulted "
            "in 150000 tokens. Please reduce the length of the messages."
        )
        body = dialect.error_body(message, code="context_length_exceeded", param="messages")
        return DialectFailure(400, body)

    def bad_key(self) -> DialectFailure:
        return self.failure(401)


def _conversation(body: Mapping[str, Any]) -> Iterator[ConversationItem]:
    for message in tables(body.get("messages")):
        match message.get("role"):
            case "user":
                yield from user_items(texts_of(message.get("content")))
            case "tool" | "function":
                yield ConversationItem("result")
            case "assistant":
                yield ConversationItem("answer")


def _offered(body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    for tool in tables(body.get("tools")):
        custom = tool.get("type") == "custom"
        function = table(tool.get("custom" if custom else "function"))
        yield OfferedTool(
            as_text(function.get("name")),
            table(function.get("parameters")),
            custom,
            description=as_text(function.get("description")),
        )


def _base(ask: Ask, kind: str) -> dict[str, Any]:
    identity = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": identity, "object": kind, "created": int(time.time()), "model": ask.model}


def _delta(
    base: Mapping[str, Any], delta: dict[str, Any], finish: str | None = None
) -> ServedEvent:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return ServedEvent({**base, "choices": [choice]})


def _finish(answer: ServedAnswer) -> str:
    if answer.calls and answer.finish == "stop":
        return "tool_calls"
    return _FINISH[answer.finish]


def _call(call: ServedCall) -> dict[str, Any]:
    if call.input is not None:
        function = {"name": call.name, "input": call.input}
        return {"id": f"call_{call.id}", "type": "custom", "custom": function}
    function = {"name": call.name, "arguments": call.arguments_json}
    return {"id": f"call_{call.id}", "type": "function", "function": function}


def _usage(answer: ServedAnswer) -> dict[str, Any]:
    tokens = answer.tokens
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
