"""A session in a browser: one cookie that no script reads and no other site sends."""

from __future__ import annotations

from datetime import timedelta

from starlette.requests import HTTPConnection
from starlette.responses import Response

from podium.web.access.people import Person
from podium.web.desk import Desk, desk_of


def cookie_name(desk: Desk) -> str:
    """Of this console: browsers keep cookies by host, whatever the port, and a machine may have several consoles."""
    name = f"podium_{desk.sessions.mark}"
    # Browsers take a cookie with this prefix only by TLS, for this host alone.
    return f"__Host-{name}" if desk.settings.is_secure else name


def cookie_of(connection: HTTPConnection) -> str:
    """The session that a browser sent; empty for none."""
    return connection.cookies.get(cookie_name(desk_of(connection)), "")


def begin_session(answer: Response, desk: Desk, person: Person, length: timedelta) -> None:
    """Let this person's browser in, for as long."""
    answer.set_cookie(
        cookie_name(desk),
        desk.sessions.begin(person, desk.podium.clock.now() + length),
        max_age=int(length.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=desk.settings.is_secure,
    )


def end_session(answer: Response, desk: Desk, cookie: str) -> None:
    """Let nobody in by this session any more."""
    desk.sessions.end(cookie)
    answer.delete_cookie(
        cookie_name(desk), httponly=True, samesite="strict", secure=desk.settings.is_secure
    )
