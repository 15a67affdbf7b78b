"""A whole database at once: what migrating, checking and copying need of it, whichever kind it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from podium.domain.errors import BadInput
from podium.journal.statements import Connection, Rows

if TYPE_CHECKING:
    from sqlalchemy import Table

Row = tuple[Any, ...]

BATCH_ROWS = 2000
"""Rows that are in memory at a time."""


class Damage(NamedTuple):
    """Something the database itself finds wrong, and what to do about it."""

    problem: str
    remedy: str


class Reading(Connection, Protocol):
    """One view of everything, of one moment."""

    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> Rows: ...

    def batches(self, statement: str) -> Iterator[list[Row]]:
        """All rows that a statement finds, never more than `BATCH_ROWS` in memory."""
        ...

    def now(self) -> datetime:
        """The moment by the clock that heartbeats in this database are measured by."""
        ...

    def key_print(self) -> str:
        """Which key its receipts are sealed with, where the database says so; else empty."""
        ...


class Filling(Reading, Protocol):
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
        """What a person does to begin anew in it."""
        ...

    def version(self) -> int:
        """The version of its schema; 0 when there is nothing of Podium's yet. Changes nothing.

        Raises a `StoreUnusable` for what is another program's or a newer Podium's.
        """
        ...

    def migrate(self) -> None:
        """Make or lift the schema to today's."""
        ...

    def reading(self) -> AbstractContextManager[Reading]: ...

    def filling(self) -> AbstractContextManager[Filling]:
        """Committed at the end of the block, or left as it was when the block raises."""
        ...

    def damage(self) -> list[Damage]:
        """What the database finds wrong with its own files and indexes."""
        ...


def database_named(text: str) -> WholeDatabase:
    """The database a person means by a path or a URL. Raises `BadInput` for any other kind."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        from podium.journal.whole_sqlite import SqliteFile

        return SqliteFile(_file(Path(text).expanduser()))
    if scheme in ("postgresql", "postgres"):
        from podium.journal.whole_postgres import PostgresDatabase

        return PostgresDatabase(text)
    if scheme == "sqlite" and rest.startswith("/"):
        from podium.journal.whole_sqlite import SqliteFile

        return SqliteFile(_file(Path(rest[1:])))
    raise BadInput(
        f"{scheme!r} is no kind of database that Podium knows; write postgresql://USER@HOST/NAME, "
        "or the path of a SQLite file or of a project"
    )


def _file(path: Path) -> Path:
    """The file itself: a project and a state folder stand for the one inside."""
    from podium.journal.store import DATABASE_NAME

    if (path / ".podium").is_dir():
        return path / ".podium" / DATABASE_NAME
    return path / DATABASE_NAME if path.is_dir() else path


def tables() -> list[Table]:
    """Every table of the schema."""
    # SQLAlchemy takes a fifth of a second to import.
    from podium.journal.schema import METADATA

    return list(METADATA.sorted_tables)


def columns_of(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def selection(table: Table, order: str = "") -> str:
    """The statement that reads a whole table, its columns in the order of the schema."""
    # A column of steps and calls is called `key`, which neither database reserves.
    chosen = ", ".join(columns_of(table))
    return f"SELECT {chosen} FROM {table.name}" + (f" ORDER BY {order}" if order else "")  # noqa: S608 - our own names
