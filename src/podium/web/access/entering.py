"""Who asks, for every handler: by a bearer token, or by a session whose forms carry their word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from podium.domain.errors import UserMustAct
from podium.web.access.cookies import cookie_of, form_cookie_of
from podium.web.access.names import HARMLESS
from podium.web.access.people import ConsoleRole, Person
from podium.web.access.refusing import NotAllowed, NotLetIn
from podium.web.desk import Desk, desk_of

FORM_WORD = "x-podium-form"
"""The header, and with underscores the field, that forms of a session carry."""
FORM_FIELD = "x_podium_form"
KNOWN_AS = "podium.person"
"""Where a request keeps who asks, once the guards have looked."""


def person_of(connection: HTTPConnection) -> Person | None:
    """Who asks, as the guards found; None when nobody known does."""
    found = connection.scope.get(KNOWN_AS)
    return found if isinstance(found, Person) else None


def recognise(connection: HTTPConnection) -> Person | None:
    """Who asks, by their token or their session, as of now. A book that cannot be read lets nobody in."""
    desk = desk_of(connection)
    try:
        if given := connection.headers.get("authorization", ""):
            kind, _, token = given.partition(" ")
            now = desk.podium.clock.now()
            return desk.tokens.person_with(token.strip(), now) if kind.lower() == "bearer" else None
        return _of_session(desk, cookie_of(connection))
    except (UserMustAct, OSError):
        return None


def _of_session(desk: Desk, cookie: str) -> Person | None:
    now = desk.podium.clock.now()
    known = desk.sessions.read(cookie, now) if cookie else None
    if known is None or not known.token_id:
        # Links of notices begin sessions without a token.
        return known
    kept = desk.tokens.person_of(known.token_id, now)
    return kept and kept.model_copy(update={"card": known.card, "by_session": True})


async def person_here(request: Request) -> Person:
    """Who asks. Raises `NotLetIn`; also for what changes something and may come from another site."""
    person = person_of(request)
    if person is None:
        raise NotLetIn("say who you are: a token of `podium serve` is needed here")
    if (
        comes_by_cookie(request)
        and request.method not in HARMLESS
        and not await _is_of_our_form(request)
    ):
        raise NotLetIn("this did not come from a page of the console; load the page again")
    return person


def comes_by_cookie(connection: HTTPConnection) -> bool:
    """Whether a browser's session is what lets them in; a token of their own goes before it."""
    return "authorization" not in connection.headers and bool(cookie_of(connection))


async def _is_of_our_form(request: Request) -> bool:
    word = request.headers.get(FORM_WORD, "")
    if not word and request.headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    ):
        word = str((await request.form()).get(FORM_FIELD, ""))
    return desk_of(request).sessions.is_form_word(form_cookie_of(request), word)


def _with(role: ConsoleRole) -> Callable[[Person], Person]:
    def check(person: Annotated[Person, Depends(person_here)]) -> Person:
        if not person.may(role):
            raise NotAllowed(f"{person.name} is no {role}; ask for a token with that role")
        return person

    return check


Viewer = Annotated[Person, Depends(person_here)]
Operator = Annotated[Person, Depends(_with(ConsoleRole.OPERATOR))]
Approver = Annotated[Person, Depends(_with(ConsoleRole.APPROVER))]
