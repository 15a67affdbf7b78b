"""A whole database at once, for migration, check and copy, whichever kind it is; the SQLite kind."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from podium.core.errors import StoreReadOnly, StoreUnusable
from podium.store.rows import RowCursor, StoreConnection
from podium.store.schema import Table
from podium.store.sqlite import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    connect,
    explained,
    prepare,
    quick_check,
)

Row = tuple[Any, ...]

BATCH_ROWS = 2000
"""Rows that are in memory at a time."""


class DatabaseDamage(NamedTuple):
    """Something the database itself finds wrong, and what to do about it."""

    problem: str
    remedy: str


class SnapshotReader(StoreConnection, Protocol):
    """One view of everything, of one moment."""

    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> RowCursor: ...

    def batches(self, statement: str) -> Iterator[list[Row]]:
        """All rows that a statement finds, never more than `BATCH_ROWS` in memory."""
        ...

    def now(self) -> datetime:
        """The moment by the clock that heartbeats in this database are measured by."""
        ...

    def key_print(self) -> str:
        """Fingerprint of the key that seals its receipts, where the database names one; else empty."""
        ...


class SnapshotWriter(SnapshotReader, Protocol):
    """The one transaction that fills an empty database. Nobody else writes meanwhile."""

    def insert(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None: ...

    def keep_key_print(self, print_: str) -> None:
        """Refuse, from now on, machines that have another key. A file needs no such word."""
        ...


class WholeDatabase(Protocol):
    """A database by its path or URL."""

    @property
    def name(self) -> str:
        """As it may be shown: without a password."""
        ...

    @property
    def to_empty(self) -> str:
        """Instructions for a person to begin anew in it."""
        ...

    def version(self) -> int:
        """The version of its schema; 0 when there is nothing of Podium's yet. Changes nothing.

        Raises a `StoreUnusable` for what is another program's or a newer Podium's.
        """
        ...

    def migrate(self) -> None:
        """Make or lift the schema to today's."""
        ...

    def reading(self) -> AbstractContextManager[SnapshotReader]: ...

    def filling(self) -> AbstractContextManager[SnapshotWriter]:
        """Committed at the end of the block, or left as it was when the block raises."""
        ...

    def damage(self) -> list[DatabaseDamage]:
        """Problems that the database finds in its own files and indexes."""
        ...


def selection(table: Table, order: str = "") -> str:
    """The statement that reads a whole table, its columns in the order of the schema."""
    # A column of steps and calls is called `key`, which neither database reserves.
    chosen = ", ".join(table.columns)
    return f"SELECT {chosen} FROM {table.name}" + (f" ORDER BY {order}" if order else "")  # noqa: S608 - our own names


class SqliteFile:
    """One file. Reading never makes it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return str(self._path)

    @property
    def to_empty(self) -> str:
        return f"move {self.name!r} and its -wal and -shm files away"

    def version(self) -> int:
        try:
            if not self._path.exists() or self._path.stat().st_size == 0:
                return 0
        except OSError as error:
            raise self._out_of_reach(error) from error
        with explained(self._path), closing(sqlite3.connect(self._path)) as connection:
            is_bare = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            application_id = int(connection.execute("PRAGMA application_id").fetchone()[0])
        if is_bare and not application_id and not version:
            return 0
        if application_id != APPLICATION_ID or version > SCHEMA_VERSION:
            prepare(self._path)  # changes nothing in a file that is not ours or newer, and says so
        return version

    def migrate(self) -> None:
        prepare(self._path)

    @contextmanager
    def reading(self) -> Iterator[SnapshotReader]:
        if not self._path.exists():
            raise StoreUnusable(self.name, "the file does not exist", "name an existing file")
        with self._transaction("BEGIN") as session:
            yield session

    @contextmanager
    def filling(self) -> Iterator[SnapshotWriter]:
        # Whoever writes takes this lock, too: they wait, and find the file filled.
        with self._transaction("BEGIN IMMEDIATE") as session:
            yield session

    def damage(self) -> list[DatabaseDamage]:
        problem = quick_check(self._path)
        if problem == "ok":
            return []
        return [
            DatabaseDamage(
                problem, "restore a backup; `sqlite3 FILE .recover` saves what is still readable"
            )
        ]

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_SqliteSession]:
        with explained(self._path), closing(connect(self._path)) as connection:
            connection.execute(begin)
            try:
                yield _SqliteSession(connection)
            except BaseException:
                connection.rollback()
                raise
            connection.execute("COMMIT")

    def _out_of_reach(self, error: OSError) -> StoreReadOnly:
        return StoreReadOnly(
            self.name,
            f"it cannot be reached ({error.strerror})",
            "give this user access to the file and its folder",
        )


class _SqliteSession:
    """A connection within a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None, /) -> RowCursor:
        return self._connection.execute(statement, parameters or {})

    def batches(self, statement: str) -> Iterator[list[Row]]:
        cursor = self._connection.execute(statement)
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield rows

    def now(self) -> datetime:
        return datetime.now(UTC)

    def insert(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        placeholders = ", ".join("?" for _ in columns)
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders})"  # noqa: S608 - our own names
        self._connection.executemany(statement, rows)

    def key_print(self) -> str:
        return ""

    def keep_key_print(self, print_: str) -> None:
        """The key lies beside the one machine's file."""
