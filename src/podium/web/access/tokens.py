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
    """What somebody may do. Everybody who comes in may look."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    """Starts, cancels, resumes and steers."""
    APPROVER = "approver"
    """Answers what waits for a person."""


class Person(FrozenModel):
    """Who asks."""

    name: str
    """Stands in events and approvals."""
    roles: frozenset[ConsoleRole] = frozenset()
    token_id: str = ""
    """The token that let them in; gone with it."""
    card: str = ""
    """The one approval that a link from a notice is for; empty for whoever may see all."""

    by_session: bool = False
    """Came with a browser's session and not with the token itself."""

    @property
    def approver(self) -> Approver:
        """The same person as whoever answers an approval."""
        if not self.token_id:
            how = Authentication.CARD_LINK if self.card else ""
            return Approver(name=self.name, authentication=how)
        how = Authentication.CONSOLE_SESSION if self.by_session else Authentication.TOKEN
        return Approver(name=self.name, authentication=how, credential=f"token:{self.token_id}")

    def may(self, role: ConsoleRole) -> bool:
        return role is ConsoleRole.VIEWER or role in self.roles


Kept = TypeVar("Kept")


class KeptFile(Generic[Kept]):
    """What stands in it, for its owner alone. Where there is no file, it is `nothing`."""

    def __init__(
        self,
        file: Path,
        shape: TypeAdapter[Kept],
        nothing: Kept,
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
        self._kept = nothing

    def read(self) -> Kept:
        """What stands there now. Raises `UserMustAct` when that is nothing of ours."""
        try:
            stat = self._file.stat()
        except FileNotFoundError:
            return self._nothing
        if self._read_at != (stat.st_mtime_ns, stat.st_ino):
            self._kept = self._parsed()
            self._read_at = (stat.st_mtime_ns, stat.st_ino)
        return self._kept

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else changes it meanwhile, in any process: read it, then write."""
        make_private_folder(self._file.parent)
        with file_lock(self._file.with_suffix(".lock")):
            yield

    def write(self, kept: Kept) -> None:
        """Put this in its place, whole or not at all. On return it survives a restart."""
        write_whole(self._file, self._shape.dump_json(kept, indent=1).decode(), mode=0o600)
        self._read_at = None

    def _parsed(self) -> Kept:
        with self._file.open("rb") as file:
            content = file.read(self._most_bytes)
        try:
            return self._shape.validate_json(content)
        except ValidationError as error:
            raise UserMustAct(f"{self._file} cannot be read, {self._when_broken}") from error


MAX_BYTES = 1_000_000
MAX_TOKENS = 1_000
MAX_NAME = 100
_WHEN_BROKEN = "so nobody is known; move it away, and `podium serve` makes a new token"


def console_folder(vault: Path) -> Path:
    """Where a project's console keeps what lets people in: outside of the project."""
    return vault / "console"


class KeptToken(FrozenModel):
    """What is kept of a token: enough to know it again, and not to make it."""

    id: NonEmpty
    name: NonEmpty
    roles: frozenset[ConsoleRole]
    sha256: str
    made_at: UtcDatetime
    expires_at: UtcDatetime | None = None
    made_by: str = ""
    """The operating-system user who made it. Empty: it was made before this was recorded."""


_KEPT = TypeAdapter(list[KeptToken])


class TokenBook:
    """The tokens of a project's console, in one file that only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self._file = KeptFile(folder / "tokens.json", _KEPT, [], MAX_BYTES, _WHEN_BROKEN)

    def make(
        self,
        name: str,
        roles: frozenset[ConsoleRole],
        now: UtcDatetime,
        expires_at: UtcDatetime | None = None,
    ) -> tuple[str, KeptToken]:
        """A new token in the clear, and what is kept of it."""
        if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            raise BadInput(
                f"a token is for somebody: give it a name, in one line of at most {MAX_NAME} characters"
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
            made_by=os_user_name(),
        )
        with self._file.alone():
            others = self._file.read()
            if len(others) >= MAX_TOKENS:
                raise BadInput(
                    f"there are {MAX_TOKENS} tokens; `podium serve tokens revoke` those that nobody needs"
                )
            self._file.write([*others, kept])
        return token, kept

    def revoke(self, token_id: str) -> KeptToken:
        """Let nobody in by it any more, nor by sessions that began with it."""
        with self._file.alone():
            known = self._file.read()
            for kept in known:
                if kept.id == token_id:
                    self._file.write([each for each in known if each is not kept])
                    return kept
        raise BadInput(
            f"there is no token with the ID {token_id!r}; `podium serve tokens` lists whose is which"
        )

    def all(self) -> list[KeptToken]:
        """Every token, oldest first."""
        return list(self._file.read())

    def person_with(self, token: str, now: UtcDatetime) -> Person | None:
        """Who came with this token, or None."""
        asked = _hash(token)
        found = None
        for kept in self._file.read():
            # Every one is compared, and each in constant time.
            if hmac.compare_digest(kept.sha256, asked) and not _is_over(kept, now):
                found = kept
        return _person(found) if found else None

    def person_of(self, token_id: str, now: UtcDatetime) -> Person | None:
        """Whose token this is, if it still holds."""
        for kept in self._file.read():
            if kept.id == token_id and not _is_over(kept, now):
                return _person(kept)
        return None


def _person(kept: KeptToken) -> Person:
    return Person(name=kept.name, roles=kept.roles, token_id=kept.id)


def _is_over(kept: KeptToken, now: UtcDatetime) -> bool:
    return kept.expires_at is not None and kept.expires_at <= now


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
