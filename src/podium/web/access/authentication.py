"""Authentication of a request by bearer token or session cookie, for every handler."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection
from starlette.responses import Response

from podium.core.errors import UserMustAct
from podium.web.access.host_names import HARMLESS
from podium.web.access.limits import NotAllowed, NotLetIn
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import WebContext, web_context


def cookie_name(context: WebContext, *, of_card: bool = False) -> str:
    """Return this console's cookie name: browsers key cookies by host without the port, and a machine may run several consoles."""
    name = f"podium_{context.sessions.console_id}{'_card' if of_card else ''}"
    # Browsers take a cookie with this prefix only by TLS, for this host alone.
    return f"__Host-{name}" if context.settings.is_secure else name


def cookie_of(connection: HTTPConnection) -> str:
    """Return the session cookie in force: a link's for its own card, else the person's; empty when there is none."""
    own, of_card = _sent(connection)
    if own and of_card and _asks_for_card(connection, of_card):
        return of_card
    return own or of_card


def form_cookie_of(connection: HTTPConnection) -> str:
    """Return the cookie that form tokens are bound to: the same on every page, whichever session is in force there."""
    own, of_card = _sent(connection)
    return own or of_card


def _sent(connection: HTTPConnection) -> tuple[str, str]:
    """Return the person's cookie and a link's, empty where the browser sent none."""
    own, of_card = _names(web_context(connection))
    return connection.cookies.get(own, ""), connection.cookies.get(of_card, "")


def _names(context: WebContext) -> tuple[str, str]:
    return cookie_name(context), cookie_name(context, of_card=True)


def _asks_for_card(connection: HTTPConnection, cookie: str) -> bool:
    context = web_context(connection)
    visitor = context.sessions.read(cookie, context.podium.clock.now())
    return visitor is not None and visitor.card in connection.scope["path"].split("/")


def begin_session(
    answer: Response, connection: HTTPConnection, person: Person, length: timedelta
) -> None:
    """Set the session cookie for `length`. Signing in with a token ends a link's session."""
    context = web_context(connection)
    if not person.card:
        _forget(answer, connection, cookie_name(context, of_card=True))
    answer.set_cookie(
        cookie_name(context, of_card=bool(person.card)),
        context.sessions.begin(person, context.podium.clock.now() + length),
        max_age=int(length.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=context.settings.is_secure,
    )


def end_sessions(answer: Response, connection: HTTPConnection) -> None:
    """End the sessions this browser sent, and delete their cookies."""
    for name in _names(web_context(connection)):
        _forget(answer, connection, name)


def _forget(answer: Response, connection: HTTPConnection, name: str) -> None:
    if cookie := connection.cookies.get(name, ""):
        context = web_context(connection)
        context.sessions.end(cookie, context.podium.clock.now())
        answer.delete_cookie(
            name, httponly=True, samesite="strict", secure=context.settings.is_secure
        )


FORM_HEADER = "x-podium-form"
"""CSRF header of a session's forms; with underscores, the form field."""
FORM_FIELD = "x_podium_form"
PERSON_KEY = "podium.person"
"""Scope key under which the guards store the person who asks."""


def person_of(connection: HTTPConnection) -> Person | None:
    """Return the person the guards recognised, or None for a stranger."""
    person = connection.scope.get(PERSON_KEY)
    return person if isinstance(person, Person) else None


def recognise(connection: HTTPConnection) -> Person | None:
    """Identify the person by token or session, as of now. A token file that cannot be read lets nobody in."""
    context = web_context(connection)
    try:
        if header := connection.headers.get("authorization", ""):
            kind, _, token = header.partition(" ")
            now = context.podium.clock.now()
            return (
                context.tokens.person_with(token.strip(), now) if kind.lower() == "bearer" else None
            )
        return _of_session(context, cookie_of(connection))
    except (UserMustAct, OSError):
        return None


def _of_session(context: WebContext, cookie: str) -> Person | None:
    now = context.podium.clock.now()
    visitor = context.sessions.read(cookie, now) if cookie else None
    if visitor is None or not visitor.token_id:
        # Links of notices begin sessions without a token.
        return visitor
    holder = context.tokens.person_of(visitor.token_id, now)
    return holder and holder.model_copy(update={"card": visitor.card, "by_session": True})


async def current_person(request: Request) -> Person:
    """Return the person who asks. Raises `NotLetIn` for strangers, and for a change that may come from another site."""
    person = person_of(request)
    if person is None:
        raise NotLetIn("authentication required; use a token from `podium serve tokens add NAME`")
    if (
        comes_by_cookie(request)
        and request.method not in HARMLESS
        and not await _is_of_our_form(request)
    ):
        raise NotLetIn("the form token is missing or expired; reload the page")
    return person


def comes_by_cookie(connection: HTTPConnection) -> bool:
    """True when a browser session lets them in; a bearer token takes precedence."""
    return "authorization" not in connection.headers and bool(cookie_of(connection))


async def _is_of_our_form(request: Request) -> bool:
    proof = request.headers.get(FORM_HEADER, "")
    if not proof and request.headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    ):
        proof = str((await request.form()).get(FORM_FIELD, ""))
    return web_context(request).sessions.is_form_token(form_cookie_of(request), proof)


def _with(role: ConsoleRole) -> Callable[[Person], Person]:
    def check(person: Annotated[Person, Depends(current_person)]) -> Person:
        if not person.may(role):
            raise NotAllowed(
                f"{person.name} does not have the {role} role; use a token with that role"
            )
        return person

    return check


Viewer = Annotated[Person, Depends(current_person)]
Operator = Annotated[Person, Depends(_with(ConsoleRole.OPERATOR))]
Approver = Annotated[Person, Depends(_with(ConsoleRole.APPROVER))]
