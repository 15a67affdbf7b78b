"""Coming in with a token, and leaving."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from podium.web.access.entering import Viewer
from podium.web.access.sessions import COOKIE
from podium.web.desk import DeskHere
from podium.web.pages.rendering import page

router = APIRouter()


@router.get("/login")
async def login_page(request: Request, to: str = "/") -> Response:
    return page(request, "login.html", to=_within(to), words="")


@router.post("/login")
async def login(
    request: Request,
    desk: DeskHere,
    token: Annotated[str, Form(max_length=200)] = "",
    to: Annotated[str, Form(max_length=500)] = "/",
) -> Response:
    now = desk.podium.clock.now()
    person = desk.tokens.person_with(token.strip(), now)
    if person is None:
        words = "This token is not known, or no longer. `podium serve tokens add NAME` makes one."
        return page(request, "login.html", status_code=401, to=_within(to), words=words)
    answer = RedirectResponse(_within(to), status_code=303)
    answer.set_cookie(
        COOKIE,
        desk.sessions.begin(person, now + desk.session_length),
        max_age=desk.settings.session_seconds,
        httponly=True,
        samesite="strict",
        secure=desk.settings.is_secure,
    )
    return answer


@router.post("/logout")
async def logout(person: Viewer) -> Response:
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


def _within(to: str) -> str:
    """A path of this console, whatever was asked for."""
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/"
