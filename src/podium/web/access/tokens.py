"""Tokens: made once, shown once, kept as hashes."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from podium.domain.errors import BadInput, UserMustAct
from podium.domain.model import Moment, NonEmpty, Noun
from podium.web.access.people import ConsoleRole, Person

MOST_BYTES = 1_000_000
MOST_TOKENS = 1_000
MOST_NAME = 100


def console_folder(vault: Path) -> Path:
    """Where a project's console keeps what lets people in: outside of the project."""
    return vault / "console"


class KeptToken(Noun):
    """What is kept of a token: enough to know it again, and not to make it."""

    id: NonEmpty
    name: NonEmpty
    roles: frozenset[ConsoleRole]
    sha256: str
    made_at: Moment
    expires_at: Moment | None = None


_KEPT = TypeAdapter(list[KeptToken])


class TokenBook:
    """The tokens of a project's console, in one file that only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "tokens.json"
        self._read_at: tuple[int, int] | None = None
        self._kept: list[KeptToken] = []

    def make(
        self,
        name: str,
        roles: frozenset[ConsoleRole],
        now: Moment,
        expires_at: Moment | None = None,
    ) -> tuple[str, KeptToken]:
        """A new token in the clear, and what is kept of it."""
        if not name.strip() or len(name) > MOST_NAME or not name.isprintable():
            raise BadInput(
                f"a token is for somebody: give it a name, in one line of at most {MOST_NAME} characters"
            )
        token_id = secrets.token_hex(4)
        token = f"pod_{token_id}_{secrets.token_urlsafe(32)}"
        kept = KeptToken(
            id=token_id,
            name=name.strip(),
            roles=roles,
            sha256=_hash(token),
            made_at=now,
            expires_at=expires_at,
        )
        with self._changed():
            if len(self._kept) >= MOST_TOKENS:
                raise BadInput(
                    f"there are {MOST_TOKENS} tokens; `podium serve tokens revoke` those that nobody needs"
                )
            self._kept.append(kept)
        return token, kept

    def revoke(self, token_id: str) -> KeptToken:
        """Let nobody in by it any more, nor by sessions that began with it."""
        with self._changed():
            for kept in self._kept:
                if kept.id == token_id:
                    self._kept.remove(kept)
                    return kept
        raise BadInput(
            f"there is no token with the ID {token_id!r}; `podium serve tokens` lists whose is which"
        )

    def all(self) -> list[KeptToken]:
        """Every token, oldest first."""
        return list(self._fresh())

    def person_with(self, token: str, now: Moment) -> Person | None:
        """Who came with this token, or None."""
        asked = _hash(token)
        found = None
        for kept in self._fresh():
            # Every one is compared, and each in constant time.
            if hmac.compare_digest(kept.sha256, asked) and not _is_over(kept, now):
                found = kept
        return _person(found) if found else None

    def person_of(self, token_id: str, now: Moment) -> Person | None:
        """Whose token this is, if it still holds."""
        for kept in self._fresh():
            if kept.id == token_id and not _is_over(kept, now):
                return _person(kept)
        return None

    def _fresh(self) -> list[KeptToken]:
        try:
            stat = self._file.stat()
        except FileNotFoundError:
            self._kept, self._read_at = [], None
            return self._kept
        if self._read_at != (stat.st_mtime_ns, stat.st_ino):
            self._kept = self._read()
            self._read_at = (stat.st_mtime_ns, stat.st_ino)
        return self._kept

    def _read(self) -> list[KeptToken]:
        with self._file.open("rb") as file:
            content = file.read(MOST_BYTES)
        try:
            return _KEPT.validate_json(content)
        except ValidationError as error:
            raise UserMustAct(
                f"{self._file} cannot be read as tokens; move it away, and `podium serve` makes a new one"
            ) from error

    @contextmanager
    def _changed(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder / "tokens.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._fresh()
            yield
            self._write()
        finally:
            os.close(lock)

    def _write(self) -> None:
        told = json.dumps(_KEPT.dump_python(self._kept, mode="json"), indent=1).encode()
        beside = self._file.with_suffix(".new")
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, told)
            os.fsync(file)
        finally:
            os.close(file)
        beside.replace(self._file)
        self._read_at = None


def _person(kept: KeptToken) -> Person:
    return Person(name=kept.name, roles=kept.roles, token_id=kept.id)


def _is_over(kept: KeptToken, now: Moment) -> bool:
    return kept.expires_at is not None and kept.expires_at <= now


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
