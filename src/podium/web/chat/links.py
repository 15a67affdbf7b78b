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
from podium.web.access.sessions import kept_key
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.context import CurrentContext
from podium.web.pages.templates import page

PREFIX = "/l/"
MAX_TOKEN = 1_000
OPENED_FOR = timedelta(minutes=15)
"""How long the session lasts that a link begins."""
SLACK = timedelta(minutes=1)
"""For how long what was used is remembered beyond its end: clocks of processes differ."""


class CardLink(FrozenModel):
    """What a link lets somebody do."""

    card: str
    person: str
    role: ConsoleRole
    until: UtcDatetime
    nonce: str

    def visitor(self) -> Person:
        """Who comes in by it: somebody who may do this much with this card, and nothing else."""
        return Person(name=self.person, roles=frozenset({self.role}), card=self.card)


class LinkMaker:
    """Makes links, knows them again, and lets each be opened once by whichever process is asked."""

    def __init__(self, key_file: Path, used: Path, clock: Clock) -> None:
        """`used` is the folder that remembers what was opened."""
        self._key = kept_key(key_file)
        self._used = OnceBook(used)
        self._clock = clock

    def link(self, card_id: str, person: str, role: str, ttl: timedelta) -> str:
        """A path of the console."""
        made = CardLink(
            card=card_id,
            person=person,
            role=ConsoleRole(role),
            until=self._clock.now() + ttl,
            nonce=secrets.token_urlsafe(12),
        )
        told = [made.card, made.person, made.role, int(made.until.timestamp()), made.nonce]
        body = _written(json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode())
        return f"{PREFIX}{body}.{self._sign(body)}"

    def read(self, token: str) -> CardLink | None:
        """What an unused link is for, and nothing is used up. None: forged, over, or opened before."""
        found = self._known(token)
        return None if found is None or self._used.is_taken(found.nonce) else found

    def use(self, token: str) -> CardLink | None:
        """Open it. Of all who try, one gets it; the others get None."""
        found = self._known(token)
        if found is None:
            return None
        first = self._used.take(found.nonce, self._clock.now(), found.until + SLACK)
        return found if first else None

    def _known(self, token: str) -> CardLink | None:
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
    """The maker of this project's links: all its processes share the key, and what was opened."""
    folder = podium.key_dir / "console"
    return LinkMaker(folder / "links.key", folder / "links", podium.clock)


def link_paths(podium: Podium) -> PathTo:
    """Where notices lead: to an approval's card by a link of its own, to a run by its page, which asks who comes."""
    maker = link_maker(podium)

    def path_to(card_id: str, notice: NoticeSettings) -> str:
        if not card_id.startswith(APPROVAL):
            return f"/runs/{card_id}"
        person = notice.person or os_user().name
        return maker.link(card_id, person, notice.role, timedelta(hours=notice.link_hours))

    return path_to


def links_router(podium: Podium) -> APIRouter:
    """The page of a link, with one button."""
    maker = link_maker(podium)
    router = APIRouter(include_in_schema=False)

    async def look(request: Request, context: CurrentContext, token: str) -> Response:
        # Chats fetch the links that they show: a look must change nothing.
        found = await asyncio.to_thread(maker.read, token)
        if found is None:
            return _gone(request, context)
        return page(request, "link.html", link=found, token=token)

    async def use(request: Request, context: CurrentContext, token: str) -> Response:
        found = await asyncio.to_thread(maker.use, token)
        if found is None:
            return _gone(request, context)
        answer = RedirectResponse(f"/cards/{found.card}", status_code=303)
        if not _may_as_much(person_of(request), found):
            begin_session(answer, request, found.visitor(), OPENED_FOR)
        return answer

    router.get("/l/{token}")(look)
    router.post("/l/{token}")(use)
    return router


def _may_as_much(person: Person | None, link: CardLink) -> bool:
    """Whether they can do all that the link allows by the session they have, which is then left as it is."""
    if person is None or person.card not in ("", link.card):
        return False
    # On a card an operator can only look.
    return link.role is not ConsoleRole.APPROVER or person.may(ConsoleRole.APPROVER)


def _gone(request: Request, context: CurrentContext) -> Response:
    context.attempts.failed(address_of(request.scope))
    return page(request, "link.html", status_code=GONE, link=None, token="")
