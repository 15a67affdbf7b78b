"""Records in PostgreSQL. Changes go through the function `roofing_apply` of the migrations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.core.errors import ToolBroke

from . import statements
from .backend import Batch, Query
from .migrating import lacking, migrations_of
from .postgres_words import refused

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_UP_TO_DATE: set[str] = set()
"""Addresses whose tables this process has seen to be up to date."""

_MIGRATING = 0x726F6F66
"""The advisory lock of whoever migrates."""


class PostgresBackend:
    """A server of one's own. A connection lives as long as one call."""

    name = "postgresql"
    copy_format = "json"

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = 20.0,
        read_only: bool = False,
        migrations: Path | None = None,
    ) -> None:
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._read_only = read_only
        self._migrations = migrations

    def prepare(self) -> None:
        """Bring the tables up to date, once in this process and alone among all."""
        if self._url in _UP_TO_DATE:
            return
        known = migrations_of("postgresql", self._migrations)
        if lacking(known, self.migrations()):
            with self._connection() as connection:
                # Held to the end of the transaction: whoever comes second finds all of it done.
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
                for migration in lacking(known, _applied(connection)):
                    connection.execute(migration.script.encode())
        _UP_TO_DATE.add(self._url)

    def select(self, query: Query) -> list[dict[str, Any]]:
        statement, values = statements.select(query, "%s")
        # As JSON, so that a row looks the same as over Supabase's REST interface.
        with self._connection() as connection:
            found = connection.execute(
                f"SELECT to_jsonb(t) FROM ({statement}) t".encode(),  # noqa: S608 - names are the schema's
                values,
            )
            return [row for (row,) in found]

    def count(self, query: Query) -> int:
        statement, values = statements.count(query, "%s")
        with self._connection() as connection:
            return int(_only(connection.execute(statement.encode(), values)))

    def apply(self, batch: Batch) -> dict[str, Any]:
        changes = json.dumps([step.as_json() for step in batch.changes])
        values = (batch.key, batch.tool, batch.now, changes, json.dumps(batch.result))
        with self._connection() as connection:
            made = connection.execute("SELECT roofing_apply(%s, %s, %s, %s, %s)", values)
            return dict(_only(made))

    def migrations(self) -> list[str]:
        with self._connection() as connection:
            return _applied(connection)

    def copy_to(self, file: Path) -> None:
        with self._connection() as connection:
            everything = _only(connection.execute("SELECT roofing_export()"))
        file.write_text(json.dumps(everything, indent=1, sort_keys=True), encoding="utf-8")

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """One transaction: committed at the end, undone on an error."""
        psycopg = _driver()
        try:
            with self._connect(psycopg) as connection:
                connection.read_only = self._read_only
                # For this transaction alone, and not when connecting: poolers refuse that.
                connection.execute(
                    "SELECT set_config('statement_timeout', %s, true), set_config('timezone', 'UTC', true)",
                    (str(int(self._timeout_seconds * 1000)),),
                )
                yield connection
        except psycopg.Error as error:
            output = error.diag
            primary, detail = output.message_primary or "", output.message_detail or ""
            raise refused(error.sqlstate or "", primary, detail, self._reason(error)) from None

    def _connect(self, psycopg: Any) -> Connection:
        connect_seconds = max(2, int(self._timeout_seconds))
        try:
            connection: Connection = psycopg.connect(
                self._url,
                connect_timeout=connect_seconds,
                application_name="podium-roofing",
                prepare_threshold=None,
            )
        except psycopg.ProgrammingError:
            # Its message quotes what it stumbled over, which may be the password.
            raise ToolBroke(
                "ROOFING_DATABASE_URL is not a valid URL; write special characters in its "
                "password as %40 and the like"
            ) from None
        return connection

    def _reason(self, error: Exception) -> str:
        """Return the driver's message without the address, which may hold a password."""
        output = str(error).strip().splitlines()
        return (output[0] if output else type(error).__name__).replace(self._url, "the address")


def _applied(connection: Connection) -> list[str]:
    there = _only(connection.execute("SELECT to_regclass('roofing_migrations')"))
    if there is None:
        return []
    return [
        name for (name,) in connection.execute("SELECT name FROM roofing_migrations ORDER BY 1")
    ]


def _only(cursor: psycopg.Cursor[tuple[Any, ...]]) -> Any:
    row = cursor.fetchone()
    return None if row is None else row[0]


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ToolBroke(
            "ROOFING_DATABASE_URL needs the PostgreSQL driver: pip install 'podium[distributed]'"
        ) from None
    return psycopg
