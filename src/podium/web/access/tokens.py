"""Tokens, stored as hashes in a locked file, and the people and roles they stand for."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from podium.config.folders import write_whole
from podium.config.os_user import os_user_name
from podium.core.approvals import Approver, Authentication
from podium.core.errors import BadInput, UserMustAct
from podium.core.model import FrozenModel, NonEmpty, UtcDatetime
from podium.platform import make_private_folder
from podium.platform.file_lock import file_lock


class ConsoleRole(StrEnum):
    """Role of a person. Everybody who is signed in may view."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    """May start, cancel, resume and steer runs."""
    APPROVER = "approver"
    """May answer what waits for a person."""


class Person(FrozenModel):
    """Person who makes a request."""

    name: str
    """Name recorded in events and approvals."""
    roles: frozenset[ConsoleRole] = frozenset()
    token_id: str = ""
    """Id of the token they signed in with; their session ends with it."""
    card: str = ""
    """The one approval a link from a notice is for; empty for people who may see all."""

    by_session: bool = False
    """Signed in by a browser session, not by the token itself."""

    @property
    def approver(self) -> Approver:
        """This person as an approver."""
        if not self.token_id:
            how = Authentication.CARD_LINK if self.card else ""
            return Approver(name=self.name, authentication=how)
        how = Authentication.CONSOLE_SESSION if self.by_session else Authentication.TOKEN
        return Approver(name=self.name, authentication=how, credential=f"token:{self.token_id}")

    def may(self, role: ConsoleRole) -> bool:
        return role is ConsoleRole.VIEWER or role in self.roles


Value = TypeVar("Value")


class PrivateJsonFile(Generic[Value]):
    """JSON file that only its owner can read, cached until it changes. Without a file the value is `nothing`."""

    def __init__(
        self,
        file: Path,
        shape: TypeAdapter[Value],
        nothing: Value,
        most_bytes: int,
        when_broken: str,
    ) -> None:
        """`when_broken` tells a person what to do about a file that cannot be read."""
        self._file = file
        self._shape = shape
        self._nothing = nothing
        self._most_bytes = most_bytes
        self._when_broken = when_broken
        self._read_at: tuple[int, int] | None = None
        self._value = nothing

    def read(self) -> Value:
        """Return the current value. Raises `UserMustAct` when the file is not valid."""
        try:
            stat = self._file.stat()
        except FileNotFoundError:
            return self._nothing
        if self._read_at != (stat.st_mtime_ns, stat.st_ino):
            self._value = self._parsed()
            self._read_at = (stat.st_mtime_ns, stat.st_ino)
        return self._value

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the file's lock, in every process: read, then write."""
        make_private_folder(self._file.parent)
        with file_lock(self._file.with_suffix(".lock")):
            yield

    def write(self, value: Value) -> None:
        """Replace the content atomically. On return it survives a restart."""
        write_whole(self._file, self._shape.dump_json(value, indent=1).decode(), mode=0o600)
        self._read_at = None

    def _parsed(self) -> Value:
        with self._file.open("rb") as file:
            content = file.read(self._most_bytes)
        try:
            return self._shape.validate_json(content)
        except ValidationError as error:
            raise UserMustAct(f"{self._file} cannot be parsed, {self._when_broken}") from error


MAX_BYTES = 1_000_000
MAX_TOKENS = 1_000
MAX_NAME = 100
_WHEN_BROKEN = "so every token is refused; move the file away, and `podium serve` creates a new one"


def console_folder(key_dir: Path) -> Path:
    """Return the folder of a console's tokens and keys: outside the project."""
    return key_dir / "console"


class TokenRecord(FrozenModel):
    """Stored form of a token: enough to recognise it, not to recreate it."""

    id: NonEmpty
    name: NonEmpty
    roles: frozenset[ConsoleRole]
    sha256: str
    made_at: UtcDatetime
    expires_at: UtcDatetime | None = None
    made_by: str = ""
    """The operating-system user who made it. Empty: it was made before this was recorded."""


_RECORDS = TypeAdapter(list[TokenRecord])


class TokenBook:
    """Tokens of a project's console, in one file that only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self._file = PrivateJsonFile(folder / "tokens.json", _RECORDS, [], MAX_BYTES, _WHEN_BROKEN)

    def make(
        self,
        name: str,
        roles: frozenset[ConsoleRole],
        now: UtcDatetime,
        expires_at: UtcDatetime | None = None,
    ) -> tuple[str, TokenRecord]:
        """Create a token; return it in clear text with its stored record."""
        if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            raise BadInput(f"a token needs a name: one line of at most {MAX_NAME} characters")
        token_id = secrets.token_hex(4)
        token = f"pod_{token_id}_{secrets.token_urlsafe(32)}"
        record = TokenRecord(
            id=token_id,
            name=name.strip(),
            roles=roles,
            sha256=_hash(token),
            made_at=now,
            expires_at=expires_at,
            made_by=os_user_name(),
        )
        with self._file.alone():
            others = self._file.read()
            if len(others) >= MAX_TOKENS:
                raise BadInput(
                    f"there are already {MAX_TOKENS} tokens; revoke unused ones with `podium serve tokens revoke ID`"
                )
            self._file.write([*others, record])
        return token, record

    def revoke(self, token_id: str) -> TokenRecord:
        """Revoke the token and every session that began with it."""
        with self._file.alone():
            records = self._file.read()
            for record in records:
                if record.id == token_id:
                    self._file.write([other for other in records if other is not record])
                    return record
        raise BadInput(f"no token has the ID {token_id!r}; list them with `podium serve tokens`")

    def all(self) -> list[TokenRecord]:
        """List every token, oldest first."""
        return list(self._file.read())

    def person_with(self, token: str, now: UtcDatetime) -> Person | None:
        """Return the person with this token, or None."""
        asked = _hash(token)
        match = None
        for record in self._file.read():
            # Every one is compared, and each in constant time.
            if hmac.compare_digest(record.sha256, asked) and not _is_over(record, now):
                match = record
        return _person(match) if match else None

    def person_of(self, token_id: str, now: UtcDatetime) -> Person | None:
        """Return the person whose token this is, or None when it is expired or revoked."""
        for record in self._file.read():
            if record.id == token_id and not _is_over(record, now):
                return _person(record)
        return None


def _person(record: TokenRecord) -> Person:
    return Person(name=record.name, roles=record.roles, token_id=record.id)


def _is_over(record: TokenRecord, now: UtcDatetime) -> bool:
    return record.expires_at is not None and record.expires_at <= now


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
