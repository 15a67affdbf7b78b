"""Links of notices: signed, good for a while and for one opening, and for one card."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from podium.domain.model import Moment, Noun
from podium.ports import Clock
from podium.web.access.people import ConsoleRole, Person
from podium.web.access.sessions import kept_key
from podium.wiring.once import OnceBook

PREFIX = "/l/"
LONGEST_TOKEN = 1_000
OPENED_FOR = timedelta(minutes=15)
"""How long the session lasts that a link begins."""
SLACK = timedelta(minutes=1)
"""For how long what was used is remembered beyond its end: clocks of processes differ."""


class CardLink(Noun):
    """What a link lets somebody do."""

    card: str
    person: str
    role: ConsoleRole
    until: Moment
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
        body, _, signed = token[:LONGEST_TOKEN].partition(".")
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
