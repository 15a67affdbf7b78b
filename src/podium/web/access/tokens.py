"""Tokens: made once, shown once, kept as hashes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from pydantic import TypeAdapter

from podium.domain.errors import BadInput
from podium.domain.model import Moment, NonEmpty, Noun
from podium.web.access.kept_file import KeptFile
from podium.web.access.people import ConsoleRole, Person
from podium.wiring.identity import os_user_name

MOST_BYTES = 1_000_000
MOST_TOKENS = 1_000
MOST_NAME = 100
_WHEN_BROKEN = "so nobody is known; move it away, and `podium serve` makes a new token"


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
    made_by: str = ""
    """The operating-system user who made it. Empty: it was made before this was recorded."""


_KEPT = TypeAdapter(list[KeptToken])


class TokenBook:
    """The tokens of a project's console, in one file that only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self._file = KeptFile(folder / "tokens.json", _KEPT, [], MOST_BYTES, _WHEN_BROKEN)

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
            made_by=os_user_name(),
        )
        with self._file.alone():
            others = self._file.read()
            if len(others) >= MOST_TOKENS:
                raise BadInput(
                    f"there are {MOST_TOKENS} tokens; `podium serve tokens revoke` those that nobody needs"
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

    def person_with(self, token: str, now: Moment) -> Person | None:
        """Who came with this token, or None."""
        asked = _hash(token)
        found = None
        for kept in self._file.read():
            # Every one is compared, and each in constant time.
            if hmac.compare_digest(kept.sha256, asked) and not _is_over(kept, now):
                found = kept
        return _person(found) if found else None

    def person_of(self, token_id: str, now: Moment) -> Person | None:
        """Whose token this is, if it still holds."""
        for kept in self._file.read():
            if kept.id == token_id and not _is_over(kept, now):
                return _person(kept)
        return None


def _person(kept: KeptToken) -> Person:
    return Person(name=kept.name, roles=kept.roles, token_id=kept.id)


def _is_over(kept: KeptToken, now: Moment) -> bool:
    return kept.expires_at is not None and kept.expires_at <= now


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
