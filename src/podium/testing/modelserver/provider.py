"""A provider's behaviour around an answer: routes, keys, model lists, token counts and refusals."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import unquote

from podium.testing.modelserver.dialects import (
    AnthropicDialect,
    ChatDialect,
    Dialect,
    DialectFailure,
    GeminiDialect,
    ResponsesDialect,
)
from podium.testing.modelserver.http_server import Gone, Request, Response
from podium.testing.modelserver.messages import json_bytes
from podium.testing.modelserver.playback import JSON, send_failure
from podium.testing.modelserver.request_log import LoggedRequest, key_of

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
    """Purpose and dialect of a path."""

    purpose: Purpose
    dialect: Dialect


def route(request: Request) -> Route | None:
    """None: no provider has this path."""
    path = request.path.rstrip("/")
    if match := _GEMINI.search(path):
        return _gemini_route(unquote(match[1]), match[2], request.query)
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


_MADE = "2025-01-01T00:00:00Z"
_MADE_SECONDS = 1735689600


def model_list(dialect: Dialect, names: Sequence[str]) -> dict[str, Any]:
    """Every model the server says it has; it answers for any other too."""
    if dialect.name == "gemini":
        return {"models": [_gemini_model(name) for name in names]}
    if dialect.name == "anthropic":
        models = [
            {"type": "model", "id": name, "display_name": name, "created_at": _MADE}
            for name in names
        ]
        ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
        return {"data": models, "has_more": False, **ends}
    listed = [
        {"id": name, "object": "model", "created": _MADE_SECONDS, "owned_by": "podium"}
        for name in names
    ]
    # codex reads a list of its own from the same path; an empty one leaves it with what it knows.
    return {"object": "list", "data": listed, "models": []}


def _gemini_model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


class Answerer(Protocol):
    """Source of the model's answers: a script, or a person."""

    async def play(
        self,
        dialect: Dialect,
        request: Request,
        response: Response,
        gone: Gone,
        logged: LoggedRequest,
    ) -> None:
        """Answer a request that the provider would take."""
        ...


class Provider:
    """Takes what a provider would take, refuses what it would refuse, and leaves the rest to the answerer."""

    def __init__(self, answerer: Answerer, *, key: str | None, models: Sequence[str]) -> None:
        self._answerer = answerer
        self._key = key
        self._models = tuple(models)

    async def answer(
        self, request: Request, response: Response, gone: Gone, logged: LoggedRequest
    ) -> None:
        if request.method == "HEAD" or request.path == "/":
            await response.whole(200, json_bytes({"server": "podium modelserver"}), JSON)
            return
        target = route(request)
        if target is None:
            message = _no_path(request)
            error = {"code": 404, "type": "not_found_error", "message": message}
            await response.whole(404, json_bytes({"type": "error", "error": error}), JSON)
            return
        dialect = target.dialect
        logged.protocol = dialect.name
        if failure := self._refused(request, dialect, target.purpose, logged.body):
            await send_failure(response, failure)
        elif target.purpose == "models":
            await response.whole(200, json_bytes(model_list(dialect, self._models)), JSON)
        elif target.purpose == "count":
            tokens = max(1, len(request.body) // 4)
            counted = {"totalTokens": tokens, "input_tokens": tokens}
            await response.whole(200, json_bytes(counted), JSON)
        else:
            await self._answerer.play(dialect, request, response, gone, logged)

    def _refused(
        self, request: Request, dialect: Dialect, purpose: Purpose, body: Any
    ) -> DialectFailure | None:
        """Return the error of a request that the provider refuses."""
        if self._key is not None and not _same(key_of(request), self._key):
            return dialect.failure(401)
        if purpose == "unknown" or (purpose == "models") != (request.method == "GET"):
            return dialect.failure(404, _no_path(request))
        if purpose == "models":
            return None
        if not isinstance(body, dict):
            return dialect.failure(400, _body_problem(request))
        if purpose == "answer" and (refusal := dialect.refusal(body)):
            return dialect.failure(400, refusal)
        return None


def _no_path(request: Request) -> str:
    return f"no route for {request.method} {request.path}; paths: {PATHS}"


def _body_problem(request: Request) -> str:
    try:
        json.loads(request.body)
    except (ValueError, RecursionError) as error:
        return f"the body is not JSON: {error}"
    return "the body must be a JSON object"


def _same(key: str, expected: str) -> bool:
    return hmac.compare_digest(key.encode(), expected.encode())
