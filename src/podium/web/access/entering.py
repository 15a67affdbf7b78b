"""Who asks, for every handler: by a bearer token, or by a session whose forms carry their word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from podium.domain.errors import PodiumError
from podium.web.access.people import ConsoleRole, Person
from podium.web.access.sessions import COOKIE
from podium.web.desk import Desk, desk_of

FORM_WORD = "x-podium-form"
"""The header, and with underscores the field, that forms of a session carry."""
FORM_FIELD = "x_podium_form"
HARMLESS = ("GET", "HEAD", "OPTIONS")


class NotLetIn(PodiumError):
    """Nobody known asks."""


class NotAllowed(PodiumError):
    """Somebody known asks for what their role does not cover."""


def person_of(connection: HTTPConnection) -> Person | None:
    """Who asks, by their token or their session; None when nobody known does."""
    desk = desk_of(connection)
    now = desk.podium.clock.now()
    given = connection.headers.get("authorization", "")
    if given:
        kind, _, token = given.partition(" ")
        return desk.tokens.person_with(token.strip(), now) if kind.lower() == "bearer" else None
    return _of_session(desk, connection.cookies.get(COOKIE, ""))


def _of_session(desk: Desk, cookie: str) -> Person | None:
    now = desk.podium.clock.now()
    known = desk.sessions.read(cookie, now) if cookie else None
    if known is None or not known.token_id:
        # Links of notices begin sessions without a token.
        return known
    kept = desk.tokens.person_of(known.token_id, now)
    return kept and kept.model_copy(update={"card": known.card})


async def person_here(request: Request) -> Person:
    """Who asks. Raises `NotLetIn`; also for what changes something and may come from another site."""
    person = person_of(request)
    if person is None:
        raise NotLetIn("say who you are: a token of `podium serve` is needed here")
    by_session = "authorization" not in request.headers
    if by_session and request.method not in HARMLESS and not await _is_of_our_form(request):
        raise NotLetIn("this did not come from a page of the console; load the page again")
    return person


async def _is_of_our_form(request: Request) -> bool:
    word = request.headers.get(FORM_WORD, "")
    if not word and request.headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    ):
        word = str((await request.form()).get(FORM_FIELD, ""))
    return desk_of(request).sessions.is_form_word(request.cookies.get(COOKIE, ""), word)


def _with(role: ConsoleRole) -> Callable[[Person], Person]:
    def check(person: Annotated[Person, Depends(person_here)]) -> Person:
        if not person.may(role):
            raise NotAllowed(f"{person.name} is no {role}; ask for a token with that role")
        return person

    return check


Viewer = Annotated[Person, Depends(person_here)]
Operator = Annotated[Person, Depends(_with(ConsoleRole.OPERATOR))]
Approver = Annotated[Person, Depends(_with(ConsoleRole.APPROVER))]
