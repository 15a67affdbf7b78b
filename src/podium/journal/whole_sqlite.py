"""A SQLite file as a whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podium.domain.errors import StoreReadOnly, StoreUnusable
from podium.journal.sqlite import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    connect,
    explained,
    prepare,
    quick_check,
)
from podium.journal.statements import Rows
from podium.journal.whole import BATCH_ROWS, Damage, Filling, Reading, Row


class SqliteFile:
    """One file. Reading never makes it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return str(self._path)

    @property
    def to_empty(self) -> str:
        return f"move {self.name!r}, and its -wal and -shm beside it, away"

    def version(self) -> int:
        try:
            if not self._path.exists() or self._path.stat().st_size == 0:
                return 0
        except OSError as error:
            raise self._out_of_reach(error) from error
        with explained(self._path), closing(sqlite3.connect(self._path)) as connection:
            is_bare = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            mark = int(connection.execute("PRAGMA application_id").fetchone()[0])
        if is_bare and not mark and not version:
            return 0
        if mark != APPLICATION_ID or version > SCHEMA_VERSION:
            prepare(self._path)  # changes nothing in a file that is not ours or newer, and says so
        return version

    def migrate(self) -> None:
        prepare(self._path)

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        if not self._path.exists():
            raise StoreUnusable(self.name, "there is no such file", "name one that is there")
        with self._transaction("BEGIN") as session:
            yield session

    @contextmanager
    def filling(self) -> Iterator[Filling]:
        # Whoever writes takes this lock, too: they wait, and find the file filled.
        with self._transaction("BEGIN IMMEDIATE") as session:
            yield session

    def damage(self) -> list[Damage]:
        found = quick_check(self._path)
        if found == "ok":
            return []
        return [
            Damage(found, "restore a copy; `sqlite3 FILE .recover` saves what is still readable")
        ]

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_Session]:
        with explained(self._path), closing(connect(self._path)) as connection:
            connection.execute(begin)
            try:
                yield _Session(connection)
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


class _Session:
    """A connection within a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None, /) -> Rows:
        return self._connection.execute(statement, parameters or {})

    def batches(self, statement: str) -> Iterator[list[Row]]:
        cursor = self._connection.execute(statement)
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield rows

    def now(self) -> datetime:
        return datetime.now(UTC)

    def insert(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        places = ", ".join("?" for _ in columns)
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - our own names
        self._connection.executemany(statement, rows)

    def key_print(self) -> str:
        return ""

    def keep_key_print(self, print_: str) -> None:
        """The key lies beside the one machine's file."""
