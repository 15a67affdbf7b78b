"""Errors as both of OpenAI's protocols word them."""

from __future__ import annotations

from typing import Any

from podium.testing.modelserver.dialects.dialect import Failure, retry_headers, wait_words

_INVALID = "invalid_request_error"
_STATUS: dict[int, tuple[str, str | None, str]] = {
    400: (_INVALID, None, "The request is invalid."),
    401: (_INVALID, "invalid_api_key", "Incorrect API key provided."),
    403: (_INVALID, "permission_denied", "Your key has no access to this model."),
    404: (_INVALID, "model_not_found", "The model does not exist or you do not have access to it."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    500: ("server_error", "server_error", "The server had an error processing your request."),
    503: ("server_error", "server_is_overloaded", "The server is overloaded."),
    529: ("server_error", "server_is_overloaded", "The server is overloaded."),
}


def failure(status: int, message: str = "", retry_after: float | None = None) -> Failure:
    """The body of an error, with the code that clients look at."""
    kind, code, words = _STATUS.get(status, ("server_error", None, "The request failed."))
    said = message or words + wait_words(retry_after)
    body = error_body(said, kind, code)
    return Failure(status, body, retry_headers(retry_after))


def error_body(
    message: str, kind: str = _INVALID, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def code_of(status: int) -> str:
    """The code of an error that is told inside a stream."""
    return _STATUS.get(status, ("", None, ""))[1] or "server_error"
