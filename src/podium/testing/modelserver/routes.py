"""Which protocol and which call of it a path means, whatever stands before it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from podium.testing.modelserver.dialects import (
    AnthropicDialect,
    ChatDialect,
    Dialect,
    GeminiDialect,
    ResponsesDialect,
)
from podium.testing.modelserver.http import Request

Purpose = Literal["answer", "count", "models", "unknown"]

_GEMINI = re.compile(r"/models/([^/:]+):(\w+)$")
_GEMINI_MODELS = re.compile(r"/v1(beta|alpha)\d*/models(/[^/:]+)?$")
_MODELS = re.compile(r"/models(/[^/:]+)?$")

PATHS = (
    "/v1beta/models/<model>:generateContent, /v1beta/models/<model>:streamGenerateContent, "
    "/v1beta/models/<model>:countTokens, /v1/responses, /v1/chat/completions, /v1/messages, "
    "/v1/messages/count_tokens, /v1/models, /v1beta/models"
)


@dataclass(frozen=True)
class Route:
    """What a path asks for."""

    purpose: Purpose
    dialect: Dialect


def route(request: Request) -> Route | None:
    """None: no provider has this path."""
    path = request.path.rstrip("/")
    if found := _GEMINI.search(path):
        return _gemini_route(unquote(found[1]), found[2], request.query)
    if path.endswith("/responses"):
        return Route("answer", ResponsesDialect())
    if path.endswith("/chat/completions"):
        return Route("answer", ChatDialect())
    if path.endswith("/messages"):
        return Route("answer", AnthropicDialect())
    if path.endswith("/messages/count_tokens"):
        return Route("count", AnthropicDialect())
    return _models_route(path, request)


def _gemini_route(model: str, verb: str, query: dict[str, str]) -> Route:
    dialect = GeminiDialect(
        model, streamed=verb == "streamGenerateContent", event_stream=query.get("alt") == "sse"
    )
    purposes: dict[str, Purpose] = {
        "generateContent": "answer",
        "streamGenerateContent": "answer",
        "countTokens": "count",
    }
    return Route(purposes.get(verb, "unknown"), dialect)


def _models_route(path: str, request: Request) -> Route | None:
    if not _MODELS.search(path):
        return None
    if _GEMINI_MODELS.search(path):
        return Route("models", GeminiDialect("", streamed=False))
    anthropic = "anthropic-version" in request.headers
    return Route("models", AnthropicDialect() if anthropic else ChatDialect())
