"""Records in one SQLite file. A connection lives as long as one call, in the thread of that call."""

from __future__ import annotations

import fcntl
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podium.core.errors import ToolBroke

from . import statements
from .backend import Batch, Query, Step
from .changes import row_changed, row_missing, rule_broken
from .migrating import Migration, lacking, migrations_of
from .schema import Kind, Table
from .values import plain

_RECORD = """CREATE TABLE IF NOT EXISTS roofing_migrations (
    name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT"""

_FULL_BYTES = 256 * 1024
"""With less than this free, an I/O error is taken for a full disk."""

_RULES = {
    "SQLITE_CONSTRAINT_FOREIGNKEY": "foreign",
    "SQLITE_CONSTRAINT_UNIQUE": "unique",
    "SQLITE_CONSTRAINT_PRIMARYKEY": "unique",
    "SQLITE_CONSTRAINT_CHECK": "check",
    "SQLITE_CONSTRAINT_NOTNULL": "null",
}


class SqliteBackend:
    """The default: no server. Several processes may use the file at once."""

    name = "sqlite"
    copy_format = "db"

    def __init__(
        self,
        file: Path,
        *,
        busy_seconds: float = 20.0,
        read_only: bool = False,
        migrations: Path | None = None,
    ) -> None:
        self._file = file
        self._busy_seconds = busy_seconds
        self._read_only = read_only
        self._known = migrations_of("sqlite", migrations)

    def prepare(self) -> None:
        """Make the file and bring its tables up to date, alone among all processes."""
        if self._file.exists() and not lacking(self._known, self.migrations()):
            return
        # Two processes that switch a new file to WAL at once can fail although both would wait.
        with (self._file.with_suffix(".lock")).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._file.touch(0o600)
            with self._connection() as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(_RECORD)
                for migration in lacking(self._known, _applied(connection)):
                    _migrate(connection, migration)

    def select(self, query: Query) -> list[dict[str, Any]]:
        statement, values = statements.select(query, "?")
        with self._connection() as connection:
            return [_decoded(query.table, row) for row in connection.execute(statement, values)]

    def count(self, query: Query) -> int:
        statement, values = statements.count(query, "?")
        with self._connection() as connection:
            return int(connection.execute(statement, values).fetchone()[0])

    def apply(self, batch: Batch) -> dict[str, Any]:
        with self._connection() as connection, _writing(connection):
            fresh = connection.execute(
                "INSERT INTO performed (key, tool, result, created_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (key) DO NOTHING",
                (batch.key, batch.tool, json.dumps(batch.result), batch.now),
            )
            if fresh.rowcount == 0:
                found = connection.execute(
                    "SELECT result FROM performed WHERE key = ?", (batch.key,)
                )
                return dict(json.loads(found.fetchone()[0]))
            for step in batch.changes:
                _make(connection, step)
            return batch.result

    def migrations(self) -> list[str]:
        with self._connection() as connection:
            return _applied(connection)

    def copy_to(self, file: Path) -> None:
        with self._connection() as connection:
            target = sqlite3.connect(file)
            try:
                connection.backup(target)
                # One file alone can be moved and hashed; WAL would leave others beside it.
                target.execute("PRAGMA journal_mode = DELETE")
            finally:
                target.close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(
                f"{self._file.resolve().as_uri()}?mode={'ro' if self._read_only else 'rw'}",
                uri=True,
                timeout=self._busy_seconds,
                isolation_level=None,
            )
            try:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA foreign_keys = ON")
                # SQLite's own knows ASCII alone.
                connection.create_function("lower", 1, _lower, deterministic=True)
                if self._read_only:
                    connection.execute("PRAGMA query_only = ON")
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise _in_words(error, self._file) from error


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    # Without IMMEDIATE two readers that both want to write cannot wait for each other.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # A full disk ends the transaction by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection, migration: Migration) -> None:
    with _writing(connection):
        for statement in migration.statements():
            connection.execute(statement)
        connection.execute("INSERT INTO roofing_migrations (name) VALUES (?)", (migration.name,))


def _applied(connection: sqlite3.Connection) -> list[str]:
    try:
        found = connection.execute("SELECT name FROM roofing_migrations ORDER BY name")
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise
    return [name for (name,) in found]


def _make(connection: sqlite3.Connection, step: Step) -> None:
    table = f'"{step.table.name}"'
    encoded = {name: _encoded(step.table, name, value) for name, value in step.values.items()}
    if step.act == "insert":
        names = ", ".join(f'"{name}"' for name in encoded)
        marks = ", ".join("?" for _ in encoded)
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - names are the schema's
        connection.execute(statement, list(encoded.values()))
        return
    _expect(connection, step)
    if step.act == "update":
        pairs = ", ".join(f'"{name}" = ?' for name in encoded)
        statement = f"UPDATE {table} SET {pairs} WHERE id = ?"  # noqa: S608 - names are the schema's
        connection.execute(statement, [*encoded.values(), step.id])
    else:
        connection.execute(f"DELETE FROM {table} WHERE id = ?", (step.id,))  # noqa: S608 - the schema's


def _expect(connection: sqlite3.Connection, step: Step) -> None:
    statement = f'SELECT * FROM "{step.table.name}" WHERE id = ?'  # noqa: S608 - the schema's
    found = connection.execute(statement, (step.id,)).fetchone()
    if found is None:
        raise row_missing(step.table.name, step.id)
    row = plain(step.table, _decoded(step.table, found))
    for column, allowed in step.expecting.items():
        if row[column] not in allowed:
            raise row_changed(step.table.name, step.id, column, row[column], allowed)


def _encoded(table: Table, column: str, value: Any) -> Any:
    return json.dumps(value) if table.columns[column] is Kind.JSON and value is not None else value


def _decoded(table: Table, row: sqlite3.Row) -> dict[str, Any]:
    found = dict(row)
    for name, value in found.items():
        if value is not None and table.columns.get(name) is Kind.JSON:
            found[name] = json.loads(value)
    return found


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _in_words(error: sqlite3.Error, file: Path) -> ToolBroke:
    code = getattr(error, "sqlite_errorname", "") or ""
    if code in _RULES:
        return rule_broken(_RULES[code])
    if code.startswith("SQLITE_BUSY"):
        return ToolBroke(f"{file.name} is busy; nothing was changed: try again")
    if code in ("SQLITE_CORRUPT", "SQLITE_NOTADB"):
        return ToolBroke(f"{file} is not a readable database; replace it with a snapshot")
    # Without space SQLite also speaks of an I/O error, or of a file that it cannot open.
    if code == "SQLITE_FULL" or (
        code.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN"))
        and shutil.disk_usage(file.parent).free < _FULL_BYTES
    ):
        return ToolBroke(f"{file}: the disk is full; nothing was changed: free space and try again")
    if code.startswith(("SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return ToolBroke(
            f"{file} cannot be used ({error}); check the disk and the permissions of the file"
        )
    return ToolBroke(f"{file.name}: {error}")
