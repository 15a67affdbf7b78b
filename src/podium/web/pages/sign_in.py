"""Sign-in with a token, and sign-out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from podium.web.access.authentication import Viewer, begin_session, end_sessions
from podium.web.access.limits import address_of
from podium.web.context import CurrentContext
from podium.web.pages.templates import page

router = APIRouter()


@router.get("/login")
async def login_page(request: Request, to: str = "/") -> Response:
    return page(request, "login.html", to=_within(to), words="")


@router.post("/login")
async def login(
    request: Request,
    context: CurrentContext,
    token: Annotated[str, Form(max_length=200)] = "",
    to: Annotated[str, Form(max_length=500)] = "/",
) -> Response:
    person = context.tokens.person_with(token.strip(), context.podium.clock.now())
    if person is None:
        context.attempts.failed(address_of(request.scope))
        problem = "This token is unknown, expired or revoked. Create one with `podium serve tokens add NAME`."
        return page(request, "login.html", status_code=401, to=_within(to), words=problem)
    answer = RedirectResponse(_within(to), status_code=303)
    begin_session(answer, request, person, context.session_length)
    return answer


@router.post("/logout")
async def logout(request: Request, person: Viewer) -> Response:
    answer = RedirectResponse("/login", status_code=303)
    end_sessions(answer, request)
    return answer


def _within(to: str) -> str:
    """Return the target if it is a path of this console, else `/`."""
    # Browsers read a backslash as a slash, and skip control characters.
    strange = "\\" in to or not to.isprintable()
    return to if to.startswith("/") and not to.startswith("//") and not strange else "/"
