"""Errors of Podium as answers: problem documents for programs, a page for people."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from podium.domain.errors import (
    AmbiguousId,
    BadInput,
    LockHeld,
    NotPossibleNow,
    PodiumError,
    UnknownId,
    UserMustAct,
)
from podium.telling.untrusted import safe_text
from podium.web.access.entering import NotAllowed, NotLetIn
from podium.web.pages.rendering import page

API = "/api/"
PROBLEM = "application/problem+json"
_CODES: tuple[tuple[type[PodiumError], int], ...] = (
    (NotLetIn, 401),
    (NotAllowed, 403),
    (UnknownId, 404),
    (AmbiguousId, 409),
    (LockHeld, 409),
    (NotPossibleNow, 409),
    (BadInput, 422),
    (UserMustAct, 409),
)


def code_of(error: PodiumError) -> int:
    """The status that tells what kind of trouble it is; 500 is never one of Podium's own errors."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 409)


def tell_faults(app: FastAPI) -> None:
    """Have every error answered in words."""

    @app.exception_handler(PodiumError)
    async def of_podium(request: Request, error: PodiumError) -> Response:
        if isinstance(error, NotLetIn) and _wants_page(request) and request.method == "GET":
            return RedirectResponse(f"/login?to={request.url.path}", status_code=303)
        return _told(request, code_of(error), type(error).__name__, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        words = "; ".join(
            f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors()
        )
        return _told(request, 422, "BadInput", words)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        return _told(request, error.status_code, "Refused", str(error.detail), error.headers)


def _wants_page(request: Request) -> bool:
    return not request.url.path.startswith(API) and "hx-request" not in request.headers


def _told(
    request: Request,
    code: int,
    kind: str,
    words: str,
    headers: object = None,
) -> Response:
    more = dict(headers) if isinstance(headers, dict) else {}
    if not request.url.path.startswith(API):
        answer = page(request, "fault.html", status_code=code, words=safe_text(words))
        answer.headers.update(more)
        return answer
    told = {"type": "about:blank", "title": kind, "status": code, "detail": safe_text(words)}
    return JSONResponse(told, code, media_type=PROBLEM, headers=more)
