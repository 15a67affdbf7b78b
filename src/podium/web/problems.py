"""Errors as responses: problem documents for programs, a page for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from podium.core.errors import (
    AmbiguousId,
    BadInput,
    CallRefused,
    LockHeld,
    NotPossibleNow,
    PodiumError,
    UnknownId,
    UserMustAct,
)
from podium.render.text import safe_text
from podium.web.access.host_names import METHODS
from podium.web.access.limits import NotAllowed, NotLetIn, TurnedAway
from podium.web.pages.templates import page

API = "/api/"
LIVE = "/live/"
PROBLEM = "application/problem+json"
_CODES: tuple[tuple[type[PodiumError], int], ...] = (
    (NotLetIn, 401),
    (NotAllowed, 403),
    (CallRefused, 403),
    (UnknownId, 404),
    (AmbiguousId, 409),
    (LockHeld, 409),
    (NotPossibleNow, 409),
    (BadInput, 422),
    (UserMustAct, 409),
)
_DETAILS = {404: "no page at this address", 405: "method not allowed at this address"}
"""Details for errors of the server itself."""
_TITLES = {
    403: "Not allowed",
    404: "Not found",
    409: "Not possible",
    422: "Invalid request",
    429: "Too many requests",
}
"""Headings of the error page."""
_JSON = "send a JSON object as the body, with `Content-Type: application/json`"


def code_of(error: PodiumError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, TurnedAway):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), 409)


def answer_to(connection: HTTPConnection, error: PodiumError) -> Response:
    """Return the error as a response. A stranger who opens a page is redirected to the sign-in page."""
    if isinstance(error, NotLetIn) and _opens_page(connection):
        to = quote(connection.scope["path"], safe="/")
        return RedirectResponse(f"/login?to={to}", status_code=303)
    return _response(connection, code_of(error), type(error).__name__, str(error), _advice(error))


def _advice(error: PodiumError) -> dict[str, str]:
    """Return headers that tell a program what to do."""
    if isinstance(error, NotLetIn):
        return {"www-authenticate": "Bearer"}
    if isinstance(error, TurnedAway) and error.retry_after_seconds:
        return {"retry-after": str(error.retry_after_seconds)}
    if code_of(error) == 405:
        return {"allow": ", ".join(METHODS)}
    return {}


def add_error_handlers(app: FastAPI) -> None:
    """Register handlers that answer every error with a problem document or page."""

    @app.exception_handler(PodiumError)
    async def of_podium(request: Request, error: PodiumError) -> Response:
        return answer_to(request, error)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        detail = "; ".join(_issue_text(issue) for issue in error.errors())
        return _response(request, 422, "BadInput", detail)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        detail = _DETAILS.get(error.status_code, str(error.detail))
        return _response(request, error.status_code, "Refused", detail, error.headers)


def _issue_text(issue: Mapping[str, Any]) -> str:
    location = issue["loc"]
    if issue["type"] == "json_invalid":
        return f"the body is not valid JSON at character {location[-1]}: {issue['ctx']['error']}; {_JSON}"
    if location == ("body",):
        # Of the body as a whole: there is none, it is no object, or it was not said that it is JSON.
        return _JSON
    return f"{'.'.join(map(str, location[1:]))}: {issue['msg']}"


def _opens_page(connection: HTTPConnection) -> bool:
    return (
        connection.scope.get("method") in ("GET", "HEAD")
        and not connection.scope["path"].startswith((API, LIVE))
        and "hx-request" not in connection.headers
    )


def _response(
    connection: HTTPConnection,
    code: int,
    kind: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    if connection.scope["type"] == "http" and not connection.scope["path"].startswith((API, LIVE)):
        answer = page(
            Request(connection.scope),
            "fault.html",
            status_code=code,
            title=_TITLES.get(code, "Request failed"),
            words=safe_text(detail),
        )
        answer.headers.update(headers or {})
        return answer
    document = {"type": "about:blank", "title": kind, "status": code, "detail": safe_text(detail)}
    return JSONResponse(document, code, media_type=PROBLEM, headers=headers)
