"""Gemini: `generateContent` and `streamGenerateContent`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from podium.testing.modelserver.dialects.dialect import (
    DialectFailure,
    marking_last,
    retry_headers,
    retry_text,
)
from podium.testing.modelserver.messages import (
    TEXT_SLOT,
    Ask,
    ConversationItem,
    OfferedTool,
    ServedAnswer,
    ServedEvent,
    as_text,
    table,
    tables,
    user_items,
)
from podium.testing.modelserver.script import ProtocolName

SCHEMA_KEYS = ("parametersJsonSchema", "parameters_json_schema", "parameters")
_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "safety": "SAFETY"}
_STATUS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    403: ("PERMISSION_DENIED", "Your API key is not allowed to use this model."),
    404: ("NOT_FOUND", "The model is not found, or is not supported for generateContent."),
    429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota."),
    500: ("INTERNAL", "An internal error has occurred."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    529: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}
_TYPE = "type.googleapis.com/google.rpc."
_SIGNATURE = "c2NyaXB0ZWQ="
"""Thinking is sealed on the first call after it, and has to come back there."""


class GeminiDialect:
    """The model's name and the kind of call stand in the path, so each request has its own dialect."""

    name: ProtocolName = "gemini"
    line_end = b"\r\n"

    def __init__(self, model: str, *, streamed: bool, event_stream: bool = True) -> None:
        self._model = model
        self._streamed = streamed
        self._event_stream = event_stream

    def refusal(self, body: Mapping[str, Any]) -> str:
        if not tables(body.get("contents")):
            return "* GenerateContentRequest.contents: contents is not specified"
        return ""

    def ask(self, body: Mapping[str, Any], *, size: int) -> Ask:
        return Ask(
            protocol=self.name,
            model=self._model,
            streamed=self._streamed,
            conversation=tuple(_conversation(body)),
            tools=tuple(_offered(body)),
            input_characters=size,
            event_stream=self._event_stream,
        )

    def whole(self, ask: Ask, answer: ServedAnswer) -> Mapping[str, Any]:
        if answer.finish == "refusal":
            return _blocked(ask, answer)
        parts = [
            *_thought(answer),
            *([{"text": TEXT_SLOT}] if answer.text else []),
            *_calls(answer),
        ]
        return _chunk(_tail(ask, answer), parts, _FINISH[answer.finish])

    def events(self, ask: Ask, answer: ServedAnswer) -> Iterator[ServedEvent]:
        if answer.finish == "refusal":
            yield ServedEvent(_blocked(ask, answer), final=True)
            return
        tail = _tail(ask, answer)
        for part in _thought(answer):
            yield ServedEvent(_chunk(tail, [part]))
        calls = _calls(answer)
        # The CLI takes a last event without any part for a broken stream, so it carries the last piece.
        for piece, last in marking_last(answer.text.pieces()):
            finish = _FINISH[answer.finish] if last and not calls else None
            data = _chunk(tail, [{"text": TEXT_SLOT}], finish)
            yield ServedEvent(data, text=(piece,), final=finish is not None)
        if calls or not answer.text:
            yield ServedEvent(_chunk(tail, calls, _FINISH[answer.finish]), final=True)

    def still_waiting(self, ask: Ask) -> ServedEvent:
        # The client of Gemini CLI takes a comment of the stream for a broken event.
        usage = {"promptTokenCount": ask.input_characters // 4}
        return ServedEvent({"usageMetadata": usage, "modelVersion": ask.model})

    def failure(
        self, status: int, message: str = "", retry_after: float | None = None
    ) -> DialectFailure:
        code, default = _STATUS.get(status, ("UNKNOWN", "The request failed."))
        details: list[dict[str, Any]] = []
        if retry_after is not None:
            details = [{"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{retry_after:g}s"}]
        text = message or default + retry_text(retry_after)
        return _failure(status, code, text, details, retry_headers(retry_after))

    def error_event(self, status: int, message: str = "") -> ServedEvent:
        return ServedEvent(self.failure(status, message).body, final=True, bare=True)

    def overflow(self) -> DialectFailure:
        limit = "exceeds the maximum number of tokens allowed (1048576)."
        return self.failure(400, f"The input token count (1200000) {limit}")

    def bad_key(self) -> DialectFailure:
        # Not a 401: Gemini calls a key it does not know an invalid argument.
        info = {
            "@type": f"{_TYPE}ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
            "metadata": {"service": "generativelanguage.googleapis.com"},
        }
        message = "API key not valid. Please pass a valid API key."
        return _failure(400, "INVALID_ARGUMENT", message, [info], {})


def _failure(
    status: int,
    code: str,
    message: str,
    details: list[dict[str, Any]],
    headers: Mapping[str, str],
) -> DialectFailure:
    error: dict[str, Any] = {"code": status, "message": message, "status": code}
    if details:
        error["details"] = details
    return DialectFailure(status, {"error": error}, headers)


def _conversation(body: Mapping[str, Any]) -> Iterator[ConversationItem]:
    for content in tables(body.get("contents")):
        parts = tables(content.get("parts"))
        if content.get("role", "user") == "model":
            yield ConversationItem("answer")
            continue
        texts = [as_text(part.get("text")) for part in parts if as_text(part.get("text"))]
        yield from user_items(texts, sum("functionResponse" in part for part in parts))


def _offered(body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    for tool in tables(body.get("tools")):
        declared = tool.get("functionDeclarations", tool.get("function_declarations"))
        for declaration in tables(declared):
            schema = next((declaration[key] for key in SCHEMA_KEYS if declaration.get(key)), None)
            yield OfferedTool(
                as_text(declaration.get("name")),
                table(schema),
                description=as_text(declaration.get("description")),
            )


def _thought(answer: ServedAnswer) -> list[dict[str, Any]]:
    return [{"text": answer.thinking, "thought": True}] if answer.thinking else []


def _calls(answer: ServedAnswer) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [
        {"functionCall": {"id": call.id, "name": call.name, "args": call.as_function}}
        for call in answer.calls
    ]
    if calls and answer.thinking:
        calls[0]["thoughtSignature"] = _SIGNATURE
    return calls


def _chunk(
    tail: Mapping[str, Any], parts: list[dict[str, Any]], finish: str | None = None
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **tail}


def _blocked(ask: Ask, answer: ServedAnswer) -> dict[str, Any]:
    feedback = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    without_output = replace(answer, tokens=replace(answer.tokens, output=0))
    return {**feedback, **_tail(ask, without_output)}


def _tail(ask: Ask, answer: ServedAnswer) -> dict[str, Any]:
    tokens = answer.tokens
    usage = {
        "promptTokenCount": tokens.input,
        "candidatesTokenCount": tokens.output,
        "totalTokenCount": tokens.input + tokens.output,
    }
    if tokens.cached:
        usage["cachedContentTokenCount"] = tokens.cached
    return {
        "usageMetadata": usage,
        "modelVersion": ask.model,
        "responseId": secrets.token_urlsafe(16),
    }
