"""PostgreSQL's errors in Podium's words: what is wrong, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.domain.errors import (
    PodiumError,
    StoreAway,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnusable,
)
from podium.journal.postgres_connection import LONGEST_WAIT_SECONDS, name_of

if TYPE_CHECKING:
    import psycopg

_AWAY = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04")
"""Beginnings of SQLSTATEs that say: this connection is of no use any more, or none to be had yet."""

_AGAIN = ("40001", "40P01")
"""Transactions that lost against another: they go through when they are tried again."""

_CROWDED = ("53300",)

_FULL = ("53100", "53200")

_TOO_MUCH = ("54",)
"""A value or a statement beyond the server's limits."""


def is_passing(error: BaseException) -> bool:
    """Whether the same may go through in a while, on another connection."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate
    if state is None:
        # The driver itself noticed: no server, a closed socket, a broken pipe.
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith(_AWAY + _AGAIN + _CROWDED)


def blames_statement(error: BaseException) -> bool:
    """Whether it is the fault of what was asked, and not of the database's state."""
    import psycopg

    if not isinstance(error, psycopg.Error) or error.sqlstate == "42501":
        return False
    # The driver calls it an operational error when a value is too much for the server's limits.
    return (error.sqlstate or "").startswith(_TOO_MUCH) or isinstance(
        error,
        psycopg.DataError
        | psycopg.IntegrityError
        | psycopg.ProgrammingError
        | psycopg.NotSupportedError,
    )


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn PostgreSQL's errors into ours."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise explain(error, url) from error


def explain(error: psycopg.Error, url: str) -> PodiumError:
    """The error of the tree that says what to do about this one."""
    name, said = name_of(url), _said(error)
    state = error.sqlstate or _state_of(said)
    if state.startswith(_FULL):
        return StoreFull(
            name,
            f"the server has no room left ({said}); this write was not made, all earlier ones are safe",
            "free some space there and run the same command again",
        )
    if state.startswith(_CROWDED):
        return StoreBusy(
            f"{name}: the server takes no more connections ({said}); end some, or raise max_connections"
        )
    if state in ("55P03", "57014", *_AGAIN):
        return StoreBusy(
            f"{name}: another session kept it for {LONGEST_WAIT_SECONDS} s ({said}); "
            "nothing was lost, run the same command again"
        )
    if state.startswith(_AWAY):
        return StoreAway(
            f"{name}: the server cannot be reached just now ({said}); nothing that was written is lost. "
            "Start the server, or correct PODIUM_DATABASE_URL"
        )
    if state in _REMEDIES:
        problem, remedy = _REMEDIES[state]
        kind = StoreReadOnly if state == "25006" else StoreUnusable
        return kind(name, f"{problem} ({said})", remedy)
    return StoreUnusable(
        name, f"the database failed ({said})", "see `podium doctor` for what is usable"
    )


_REMEDIES = {
    "25006": (
        "it can only be read: a standby, or a database set to read-only",
        "name the primary server in PODIUM_DATABASE_URL",
    ),
    "28P01": (
        "the password is wrong, or the role is not known",
        "correct it in PODIUM_DATABASE_URL; special characters are written as %-escapes",
    ),
    "28000": (
        "the server refuses this role from this machine",
        "correct the role in PODIUM_DATABASE_URL, or allow it in the server's pg_hba.conf",
    ),
    "3D000": (
        "there is no such database",
        "make it with `createdb`, or correct its name in PODIUM_DATABASE_URL",
    ),
    "42501": (
        "the role may not do this",
        "reading takes the role podium_viewer, working podium_worker, `podium db migrate` podium_owner: name "
        "the one that is needed in PODIUM_DATABASE_URL. Where the schemas were made anew, run deploy/roles.sql "
        "again: it grants the rights",
    ),
    "42P01": (
        "a table is missing",
        "run `podium db migrate` as the owner of the database",
    ),
    "TLS": (
        "no secure connection could be made",
        "set sslmode and sslrootcert in PODIUM_DATABASE_URL as the server's certificate asks for",
    ),
    "name": (
        "the host's name is not known",
        "correct the host in PODIUM_DATABASE_URL",
    ),
}
"""SQLSTATE, or a word of our own where the driver gives none → what is wrong, what to do."""

# libpq gives no SQLSTATE for a connection that was refused, only the server's words.
_REFUSALS = (
    (re.compile(r"password authentication failed|no password supplied"), "28P01"),
    (re.compile(r"no pg_hba\.conf entry .*no encryption"), "TLS"),
    (re.compile(r"no pg_hba\.conf entry|role \".*\" (does not exist|is not permitted)"), "28000"),
    (re.compile(r"database \".*\" does not exist"), "3D000"),
    (re.compile(r"permission denied for database"), "42501"),
    (re.compile(r"too many (clients|connections)|connection slots"), "53300"),
    (re.compile(r"(?i)\bssl\b|certificate|\btls\b"), "TLS"),
    (
        re.compile(r"(?i)could not translate host name|name or service not known|name resolution"),
        "name",
    ),
)


def _state_of(said: str) -> str:
    return next((state for words, state in _REFUSALS if words.search(said)), "08")


def _said(error: psycopg.Error) -> str:
    """The first thing the server or the driver said, in one line that is not too long."""
    text = error.diag.message_primary or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = " ".join(lines[:2]) if lines else type(error).__name__
    words = words.removeprefix("connection failed: ")
    return words if len(words) <= 300 else f"{words[:300]}…"
