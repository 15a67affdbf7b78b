"""Sessions of browsers: signed cookies, CSRF tokens, and the list of sessions that were signed out."""

from __future__ import annotations

import base64
import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter

from podium.core.errors import UserMustAct
from podium.core.model import FrozenModel, UtcDatetime
from podium.platform import make_private_folder
from podium.web.access.tokens import ConsoleRole, KeptFile, Person

MAX_LEFT = 10_000
MAX_BYTES = 2_000_000
_WHEN_BROKEN = (
    "so nobody knows which sessions were left; move it away together with session.key beside it, and everybody comes in "
    "anew"
)


class _Left(FrozenModel):
    over_until: float = 0.0
    """Whatever ends by then is over, whether it was left or not."""
    names: dict[str, float] = Field(default_factory=dict)
    """Session → when it would have ended, in seconds of the epoch."""


_SHAPE = TypeAdapter(_Left)


class LeftBook:
    """Remembers each until it would have ended, for every process, in a file that only its owner can read.

    With too many at once, those that end first are forgotten together with all others that end by then:
    some people come in anew, and nobody comes in again who left.
    """

    def __init__(self, file: Path, most: int = MAX_LEFT) -> None:
        self._file = KeptFile(file, _SHAPE, _Left(), MAX_BYTES, _WHEN_BROKEN)
        self._most = most

    def add(self, name: str, until: float, now: float) -> None:
        """Let this session be over. On return that survives a restart."""
        with self._file.alone():
            kept = self._file.read()
            names = {each: end for each, end in kept.names.items() if end > now}
            self._file.write(_bounded(kept.over_until, {**names, name: until}, self._most))

    def has(self, name: str, until: float) -> bool:
        kept = self._file.read()
        return name in kept.names or until <= kept.over_until


def _bounded(over_until: float, names: dict[str, float], most: int) -> _Left:
    if len(names) > most:
        over_until = max(over_until, sorted(names.values())[most // 2])
    return _Left(
        over_until=over_until,
        names={name: until for name, until in names.items() if until > over_until},
    )


SHORTEST_KEY = 32


def kept_key(file: Path) -> bytes:
    """The key in this file, made when there is none. Only its owner can read it."""
    make_private_folder(file.parent)
    with suppress(FileExistsError):
        # Whole from the start for whoever else looks: written beside, and linked to its place.
        beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(made, secrets.token_bytes(SHORTEST_KEY))
            os.fsync(made)
        finally:
            os.close(made)
        try:
            os.link(beside, file)
        finally:
            beside.unlink()
    key = file.read_bytes()
    if len(key) < SHORTEST_KEY:
        raise UserMustAct(f"{file} is no key any more; move it away, and a new one is made")
    return key


class Sessions:
    """Makes and reads cookies. What was changed in them, or is over, is nobody's."""

    def __init__(self, key: bytes, left: LeftBook) -> None:
        self._key = key
        self._left = left
        self.mark = self._sign("mark", "")[:8]
        """Tells this console's cookies from those of others on the same machine."""

    def begin(self, person: Person, until: UtcDatetime) -> str:
        """A cookie for this person."""
        told = {
            "name": person.name,
            "roles": sorted(person.roles),
            "token": person.token_id,
            "card": person.card,
            "until": until.timestamp(),
            "is": secrets.token_urlsafe(9),
        }
        body = base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")
        return f"{body}.{self._sign('session', body)}"

    def read(self, cookie: str, now: UtcDatetime) -> Person | None:
        """Whose cookie it is, or None. Whether their token still holds is for the book to say."""
        told = self._told(cookie)
        if told is None or told["until"] <= now.timestamp():
            return None
        if self._left.has(told["is"], told["until"]):
            return None
        roles = frozenset(ConsoleRole(role) for role in told["roles"])
        return Person(name=told["name"], roles=roles, token_id=told["token"], card=told["card"])

    def end(self, cookie: str, now: UtcDatetime) -> None:
        """Read it no more, in any process: whoever leaves takes the cookie along."""
        told = self._told(cookie)
        if told is not None and told["until"] > now.timestamp():
            self._left.add(told["is"], told["until"], now.timestamp())

    def form_word(self, cookie: str) -> str:
        """What forms of this session must carry: no other site knows it."""
        return self._sign("form", cookie)

    def is_form_word(self, cookie: str, word: str) -> bool:
        return hmac.compare_digest(self.form_word(cookie).encode(), word.encode())

    def _told(self, cookie: str) -> dict[str, Any] | None:
        """What stands in a cookie of ours; None for any other."""
        body, _, signed = cookie.partition(".")
        if not hmac.compare_digest(self._sign("session", body).encode(), signed.encode()):
            return None
        try:
            told = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except ValueError:
            return None
        return told if isinstance(told, dict) else None

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.digest(self._key, f"{purpose}\0{text}".encode(), "sha256").hex()
