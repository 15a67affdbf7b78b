"""Links in notices (`/l/…`): signed, short-lived, used up by opening."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from podium.app.app import Podium
from podium.app.notices import PathTo
from podium.app.single_use import OnceBook
from podium.config.chat_settings import NoticeSettings
from podium.config.os_user import os_user
from podium.core.model import FrozenModel, UtcDatetime
from podium.ports import Clock
from podium.web.access.authentication import begin_session, person_of
from podium.web.access.limits import address_of
from podium.web.access.sessions import load_key
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import CurrentContext
from podium.web.pages.templates import page

PREFIX = "/l/"
MAX_TOKEN = 1_000
OPENED_FOR = timedelta(minutes=15)
"""Length of the session that a link begins."""
SLACK = timedelta(minutes=1)
"""Time a used link is remembered beyond its expiry: clocks of processes differ."""


class CardLink(FrozenModel):
    """Permission a link carries."""

    card: str
    person: str
    role: ConsoleRole
    until: UtcDatetime
    nonce: str

    def visitor(self) -> Person:
        """The person the link signs in: they may act on this card, and nothing else."""
        return Person(name=self.person, roles=frozenset({self.role}), card=self.card)


class LinkMaker:
    """Issues links and verifies them; each can be opened once, by any process."""

    def __init__(self, key_file: Path, used: Path, clock: Clock) -> None:
        """`used` is the folder that remembers what was opened."""
        self._key = load_key(key_file)
        self._used = OnceBook(used)
        self._clock = clock

    def link(self, card_id: str, person: str, role: str, ttl: timedelta) -> str:
        """Issue a link, as a path of the console."""
        made = CardLink(
            card=card_id,
            person=person,
            role=ConsoleRole(role),
            until=self._clock.now() + ttl,
            nonce=secrets.token_urlsafe(12),
        )
        fields = [made.card, made.person, made.role, int(made.until.timestamp()), made.nonce]
        body = _written(json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode())
        return f"{PREFIX}{body}.{self._sign(body)}"

    def read(self, token: str) -> CardLink | None:
        """Read an unused link without using it up. None: forged, expired, or opened before."""
        link = self._valid(token)
        return None if link is None or self._used.is_taken(link.nonce) else link

    def use(self, token: str) -> CardLink | None:
        """Open the link. Only the first caller gets it; others get None."""
        link = self._valid(token)
        if link is None:
            return None
        first = self._used.take(link.nonce, self._clock.now(), link.until + SLACK)
        return link if first else None

    def _valid(self, token: str) -> CardLink | None:
        body, _, signed = token[:MAX_TOKEN].partition(".")
        if not hmac.compare_digest(self._sign(body).encode(), signed.encode(errors="replace")):
            return None
        try:
            card, person, role, until, nonce = json.loads(_read(body))
            link = CardLink(
                card=card,
                person=person,
                role=ConsoleRole(role),
                until=datetime.fromtimestamp(until, UTC),
                nonce=nonce,
            )
        except (ValueError, TypeError, binascii.Error, ValidationError):
            return None
        return link if link.until > self._clock.now() else None

    def _sign(self, body: str) -> str:
        text = f"link\0{body}".encode(errors="replace")
        return _written(hmac.digest(self._key, text, "sha256"))


def _written(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _read(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


APPROVAL = "apr_"
GONE = 410


def link_maker(podium: Podium) -> LinkMaker:
    """Return the maker of this project's links: its processes share the key and the record of opened links."""
    folder = podium.key_dir / "console"
    return LinkMaker(folder / "links.key", folder / "links", podium.clock)


def link_paths(podium: Podium) -> PathTo:
    """Return the path of a notice: a signed link for an approval's card, the page of a run otherwise."""
    maker = link_maker(podium)

    def path_to(card_id: str, notice: NoticeSettings) -> str:
        if not card_id.startswith(APPROVAL):
            return f"/runs/{card_id}"
        person = notice.person or os_user().name
        return maker.link(card_id, person, notice.role, timedelta(hours=notice.link_hours))

    return path_to


def links_router(podium: Podium) -> APIRouter:
    """Router of the page of a link, with one button."""
    maker = link_maker(podium)
    router = APIRouter(include_in_schema=False)

    async def look(request: Request, context: CurrentContext, token: str) -> Response:
        # Chats fetch the links that they show: a look must change nothing.
        link = await asyncio.to_thread(maker.read, token)
        if link is None:
            return _gone(request, context)
        return page(request, "link.html", link=link, token=token)

    async def use(request: Request, context: CurrentContext, token: str) -> Response:
        link = await asyncio.to_thread(maker.use, token)
        if link is None:
            return _gone(request, context)
        answer = RedirectResponse(f"/cards/{link.card}", status_code=303)
        if not _may_as_much(person_of(request), link):
            begin_session(answer, request, link.visitor(), OPENED_FOR)
        return answer

    router.get("/l/{token}")(look)
    router.post("/l/{token}")(use)
    return router


def _may_as_much(person: Person | None, link: CardLink) -> bool:
    """True when the current session already allows all the link does; it is then left as it is."""
    if person is None or person.card not in ("", link.card):
        return False
    # On a card an operator can only look.
    return link.role is not ConsoleRole.APPROVER or person.may(ConsoleRole.APPROVER)


def _gone(request: Request, context: CurrentContext) -> Response:
    context.attempts.failed(address_of(request.scope))
    return page(request, "link.html", status_code=GONE, link=None, token="")
