"""Sessions in a browser: cookies that no script reads and no other site sends.

A link's session has one of its own beside the person's, so that opening a link puts nobody out.
"""

from __future__ import annotations

from datetime import timedelta

from starlette.requests import HTTPConnection
from starlette.responses import Response

from podium.web.access.people import Person
from podium.web.desk import Desk, desk_of


def cookie_name(desk: Desk, *, of_card: bool = False) -> str:
    """Of this console: browsers keep cookies by host, whatever the port, and a machine may have several consoles."""
    name = f"podium_{desk.sessions.mark}{'_card' if of_card else ''}"
    # Browsers take a cookie with this prefix only by TLS, for this host alone.
    return f"__Host-{name}" if desk.settings.is_secure else name


def cookie_of(connection: HTTPConnection) -> str:
    """The session that lets a browser in: a link's for its own card, else the person's; empty for none."""
    own, of_card = _sent(connection)
    if own and of_card and _asks_for_card(connection, of_card):
        return of_card
    return own or of_card


def form_cookie_of(connection: HTTPConnection) -> str:
    """The session whose word forms carry: the same on every page, whichever session lets the browser in there."""
    own, of_card = _sent(connection)
    return own or of_card


def _sent(connection: HTTPConnection) -> tuple[str, str]:
    """The person's session and a link's; empty for those that the browser has not."""
    own, of_card = _names(desk_of(connection))
    return connection.cookies.get(own, ""), connection.cookies.get(of_card, "")


def _names(desk: Desk) -> tuple[str, str]:
    return cookie_name(desk), cookie_name(desk, of_card=True)


def _asks_for_card(connection: HTTPConnection, cookie: str) -> bool:
    desk = desk_of(connection)
    visitor = desk.sessions.read(cookie, desk.podium.clock.now())
    return visitor is not None and visitor.card in connection.scope["path"].split("/")


def begin_session(
    answer: Response, connection: HTTPConnection, person: Person, length: timedelta
) -> None:
    """Let this person's browser in, for as long. Whoever comes as themselves leaves a link's session behind."""
    desk = desk_of(connection)
    if not person.card:
        _forget(answer, connection, cookie_name(desk, of_card=True))
    answer.set_cookie(
        cookie_name(desk, of_card=bool(person.card)),
        desk.sessions.begin(person, desk.podium.clock.now() + length),
        max_age=int(length.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=desk.settings.is_secure,
    )


def end_sessions(answer: Response, connection: HTTPConnection) -> None:
    """Let nobody in any more by the sessions that this browser sent."""
    for name in _names(desk_of(connection)):
        _forget(answer, connection, name)


def _forget(answer: Response, connection: HTTPConnection, name: str) -> None:
    if cookie := connection.cookies.get(name, ""):
        desk = desk_of(connection)
        desk.sessions.end(cookie, desk.podium.clock.now())
        answer.delete_cookie(name, httponly=True, samesite="strict", secure=desk.settings.is_secure)
