"""A whole PostgreSQL database at once, for migration, check and copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from podium.store.database_snapshot import (
    BATCH_ROWS,
    DatabaseDamage,
    Row,
    SnapshotReader,
    SnapshotWriter,
)
from podium.store.postgres import (
    COMMIT_LOCK,
    SCHEMA,
    PostgresConnection,
    connect,
    explained,
    name_of,
    prepare,
    schema_version,
)
from podium.store.postgres_connection import translated
from podium.store.rows import RowCursor

_INVALID_INDEXES = (
    "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
    "WHERE relnamespace = to_regnamespace(:schema) AND NOT (indisvalid AND indisready) ORDER BY 1"
)
_BAD_PAGES = (
    "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"
)
_OTHER_SORTING = (
    "SELECT datcollversion, pg_database_collation_actual_version(oid) FROM pg_database "
    "WHERE datname = current_database() "
    "AND datcollversion <> pg_database_collation_actual_version(oid)"
)
_KNOWS_ITS_SORTING = 150_000
"""From this version on the server remembers by which version of a language's rules it sorted."""


class PostgresDatabase:
    """One database by its URL. Podium's tables are in its schema `podium`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = name_of(url)

    @property
    def to_empty(self) -> str:
        return (
            "as its owner, run `DROP SCHEMA podium CASCADE; DROP SCHEMA IF EXISTS dbos CASCADE` in psql; "
            "if you use the roles of deploy/roles.sql, run that file again before you continue"
        )

    def version(self) -> int:
        with self._connected() as connection:
            return schema_version(connection)

    def migrate(self) -> None:
        prepare(self.url)

    @contextmanager
    def reading(self) -> Iterator[SnapshotReader]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as session:
            yield session

    @contextmanager
    def filling(self) -> Iterator[SnapshotWriter]:
        with self._transaction("BEGIN") as session:
            session.execute("SELECT pg_advisory_xact_lock(:key)", {"key": COMMIT_LOCK})
            yield session

    def damage(self) -> list[DatabaseDamage]:
        with self._connected() as connection:
            return list(_damage(connection))

    @contextmanager
    def _connected(self) -> Iterator[PostgresConnection]:
        with explained(self.url):
            connection = connect(self.url)
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_PostgresSession]:
        with self._connected() as connection:
            connection.execute(begin)
            # The other side of a copy may take its time with a batch.
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            # Closing the connection without this takes everything back.
            yield _PostgresSession(connection)
            connection.execute("COMMIT")


class _PostgresSession:
    """A connection within a transaction."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None, /) -> RowCursor:
        return self._connection.execute(statement, parameters or {})

    def batches(self, statement: str) -> Iterator[list[Row]]:
        # A cursor that has a name stays with the server: the driver would else fetch all there is.
        with self._connection.raw.cursor(name="podium_batches") as cursor:
            cursor.execute(translated(statement).encode())
            while rows := cursor.fetchmany(BATCH_ROWS):
                yield rows

    def now(self) -> datetime:
        timestamp: datetime = self.execute("SELECT clock_timestamp()").fetchone()[0]
        return timestamp

    def insert(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._connection.raw.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def key_print(self) -> str:
        row = self.execute("SELECT value FROM meta WHERE name = 'receipt_key'").fetchone()
        return str(row[0]) if row is not None else ""

    def keep_key_print(self, print_: str) -> None:
        self.execute(
            "INSERT INTO meta (name, value) VALUES ('receipt_key', :print) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            {"print": print_},
        )


def _damage(connection: PostgresConnection) -> Iterator[DatabaseDamage]:
    for (index,) in connection.execute(_INVALID_INDEXES, {"schema": SCHEMA}).fetchall():
        yield DatabaseDamage(f"the index {index!r} is invalid", f"REINDEX INDEX {SCHEMA}.{index}")
    bad = connection.execute(_BAD_PAGES).fetchone()
    if bad is not None and bad[0]:
        yield DatabaseDamage(
            f"the server read {bad[0]} damaged pages of this database",
            "check the server's log and restore a backup",
        )
    if connection.raw.info.server_version < _KNOWS_ITS_SORTING:
        return
    for old, new in connection.execute(_OTHER_SORTING).fetchall():
        yield DatabaseDamage(
            f"text was sorted with version {old} of the collation, but the system now has {new}",
            "as its owner, run REINDEX DATABASE, then ALTER DATABASE … REFRESH COLLATION VERSION",
        )
