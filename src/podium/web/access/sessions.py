"""Sessions of browsers: signed cookies, CSRF tokens, and the list of sessions that were signed out."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter

from podium.core.errors import UserMustAct
from podium.core.model import FrozenModel, UtcDatetime
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_create
from podium.web.access.tokens import ConsoleRole, Person, PrivateJsonFile

MAX_LEFT = 10_000
MAX_BYTES = 2_000_000
_WHEN_BROKEN = (
    "so Podium cannot tell which sessions were signed out; move it away together with session.key, and everybody "
    "signs in again"
)


class _Left(FrozenModel):
    over_until: float = 0.0
    """Every session that ends by then is over, signed out or not."""
    names: dict[str, float] = Field(default_factory=dict)
    """Session → when it would have ended, in seconds of the epoch."""


_SHAPE = TypeAdapter(_Left)


class SignedOutSessions:
    """Sessions signed out before their end, shared by all processes in a file only its owner can read.

    When there are too many, the earliest are dropped and every session that ends by then is over:
    some people have to sign in again, and nobody who signed out gets back in.
    """

    def __init__(self, file: Path, most: int = MAX_LEFT) -> None:
        self._file = PrivateJsonFile(file, _SHAPE, _Left(), MAX_BYTES, _WHEN_BROKEN)
        self._most = most

    def add(self, name: str, until: float, now: float) -> None:
        """Sign out this session. On return it survives a restart."""
        with self._file.alone():
            book = self._file.read()
            names = {session: end for session, end in book.names.items() if end > now}
            self._file.write(_bounded(book.over_until, {**names, name: until}, self._most))

    def has(self, name: str, until: float) -> bool:
        book = self._file.read()
        return name in book.names or until <= book.over_until


def _bounded(over_until: float, names: dict[str, float], most: int) -> _Left:
    if len(names) > most:
        over_until = max(over_until, sorted(names.values())[most // 2])
    return _Left(
        over_until=over_until,
        names={name: until for name, until in names.items() if until > over_until},
    )


SHORTEST_KEY = 32


def load_key(file: Path) -> bytes:
    """Read the key in this file, creating it when missing. Only its owner can read it."""
    make_private_folder(file.parent)
    with suppress(FileExistsError):
        atomic_create(file, secrets.token_bytes(SHORTEST_KEY))
    key = file.read_bytes()
    if len(key) < SHORTEST_KEY:
        raise UserMustAct(f"{file} is not a valid key; move it away to have a new one created")
    return key


class Sessions:
    """Issues and reads signed cookies. A changed or expired one belongs to nobody."""

    def __init__(self, key: bytes, left: SignedOutSessions) -> None:
        self._key = key
        self._left = left
        self.console_id = self._sign("mark", "")[:8]
        """Distinguishes this console's cookies from those of others on the same host."""

    def begin(self, person: Person, until: UtcDatetime) -> str:
        """Issue a cookie for this person."""
        fields = {
            "name": person.name,
            "roles": sorted(person.roles),
            "token": person.token_id,
            "card": person.card,
            "until": until.timestamp(),
            "is": secrets.token_urlsafe(9),
        }
        body = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
        return f"{body}.{self._sign('session', body)}"

    def read(self, cookie: str, now: UtcDatetime) -> Person | None:
        """Return the cookie's person, or None. The caller checks that their token is still valid."""
        fields = self._fields(cookie)
        if fields is None or fields["until"] <= now.timestamp():
            return None
        if self._left.has(fields["is"], fields["until"]):
            return None
        roles = frozenset(ConsoleRole(role) for role in fields["roles"])
        return Person(
            name=fields["name"], roles=roles, token_id=fields["token"], card=fields["card"]
        )

    def end(self, cookie: str, now: UtcDatetime) -> None:
        """Sign out the cookie in every process: the browser may keep a copy."""
        fields = self._fields(cookie)
        if fields is not None and fields["until"] > now.timestamp():
            self._left.add(fields["is"], fields["until"], now.timestamp())

    def form_token(self, cookie: str) -> str:
        """CSRF token that this session's forms must carry."""
        return self._sign("form", cookie)

    def is_form_token(self, cookie: str, proof: str) -> bool:
        return hmac.compare_digest(self.form_token(cookie).encode(), proof.encode())

    def _fields(self, cookie: str) -> dict[str, Any] | None:
        """Return the fields of a cookie we signed; None for any other."""
        body, _, signed = cookie.partition(".")
        if not hmac.compare_digest(self._sign("session", body).encode(), signed.encode()):
            return None
        try:
            fields = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except ValueError:
            return None
        return fields if isinstance(fields, dict) else None

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.digest(self._key, f"{purpose}\0{text}".encode(), "sha256").hex()
