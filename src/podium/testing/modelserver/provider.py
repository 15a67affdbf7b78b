"""What every provider does around an answer: keys, paths, lists, counts and refusals."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from typing import Any, Protocol

from podium.testing.modelserver.answer import json_bytes
from podium.testing.modelserver.dialects import Dialect, Failure
from podium.testing.modelserver.http import Request, Response
from podium.testing.modelserver.listening import Gone
from podium.testing.modelserver.model_list import model_list
from podium.testing.modelserver.playing import JSON, send_failure
from podium.testing.modelserver.requests import SeenRequest, key_of
from podium.testing.modelserver.routes import PATHS, Purpose, route


class Answerer(Protocol):
    """Who speaks for the model: a script, or a person."""

    async def play(
        self, dialect: Dialect, request: Request, response: Response, gone: Gone, seen: SeenRequest
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
        self, request: Request, response: Response, gone: Gone, seen: SeenRequest
    ) -> None:
        if request.method == "HEAD" or request.path == "/":
            await response.whole(200, json_bytes({"server": "podium modelserver"}), JSON)
            return
        found = route(request)
        if found is None:
            words = _no_path(request)
            error = {"code": 404, "type": "not_found_error", "message": words}
            await response.whole(404, json_bytes({"type": "error", "error": error}), JSON)
            return
        dialect = found.dialect
        seen.protocol = dialect.name
        if failure := self._refused(request, dialect, found.purpose, seen.body):
            await send_failure(response, failure)
        elif found.purpose == "models":
            await response.whole(200, json_bytes(model_list(dialect, self._models)), JSON)
        elif found.purpose == "count":
            tokens = max(1, len(request.body) // 4)
            counted = {"totalTokens": tokens, "input_tokens": tokens}
            await response.whole(200, json_bytes(counted), JSON)
        else:
            await self._answerer.play(dialect, request, response, gone, seen)

    def _refused(
        self, request: Request, dialect: Dialect, purpose: Purpose, body: Any
    ) -> Failure | None:
        """Why this request gets no answer of the model."""
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
    return f"no {request.method} {request.path} here; paths: {PATHS}"


def _body_problem(request: Request) -> str:
    try:
        json.loads(request.body)
    except (ValueError, RecursionError) as error:
        return f"the body is not JSON: {error}"
    return "the body must be a JSON object"


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
