"""PostgreSQL: making a database ready, and saying plainly why it cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.domain.errors import StoreForeign, StoreNewer, StoreUnusable
from podium.journal.postgres_connection import SCHEMA, PostgresConnection, connect, name_of
from podium.journal.postgres_errors import explain, explained
from podium.journal.sqlite import SCHEMA_VERSION

__all__ = [
    "COMMIT_LOCK",
    "MARK",
    "MIGRATIONS",
    "SCHEMA",
    "PostgresConnection",
    "connect",
    "explain",
    "explained",
    "name_of",
    "prepare",
    "schema_version",
]

MARK = "podium"
"""Marks the schema as ours."""

COMMIT_LOCK = 0x506F_6469_756D
"""The advisory lock that every writing transaction holds, and every migration."""

Migration = Callable[[PostgresConnection], None]

MIGRATIONS: Mapping[int, Migration] = {}
"""Schema version → what lifts a database of that version to the next one."""

# Beside the one schema of all databases: what a file's header is for SQLite, and who committed last.
_OWN_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE writers (id TEXT PRIMARY KEY, last BIGINT NOT NULL, at BIGINT NOT NULL) "
    # Every commit changes its row: with room on the page no index has to follow.
    "WITH (fillfactor = 10)",
)


def prepare(url: str, migrations: Mapping[int, Migration] = MIGRATIONS) -> None:
    """Make sure the database holds our tables in today's schema.

    Creating and upgrading are one transaction, made by one process at a time: one that is killed at any
    instant leaves what was there. A schema that is current is only looked at. Nothing is changed in one
    that is not ours or newer.
    """
    with explained(url):
        connection = connect(url)
        try:
            _must_keep_all_text(connection)
            if schema_version(connection) != SCHEMA_VERSION:
                _build(connection, migrations)
        finally:
            connection.close()


def schema_version(connection: PostgresConnection) -> int:
    """The version of our own tables; 0 when there are none yet. Raises for anybody else's."""
    tables, ours = _one(
        connection,
        "SELECT count(*), count(*) FILTER (WHERE relname = 'meta') FROM pg_class "
        "WHERE relnamespace = to_regnamespace(:schema) AND relkind IN ('r', 'p', 'v', 'm')",
        schema=SCHEMA,
    )
    if not tables:
        return 0
    kept = _kept(connection) if ours else {}
    if kept.get("mark") != MARK:
        raise StoreForeign(
            connection.name,
            f"its schema {SCHEMA!r} belongs to another program",
            "name another database",
        )
    version = int(kept.get("schema", "0"))
    if version > SCHEMA_VERSION:
        raise StoreNewer(
            connection.name,
            f"a newer Podium made it (schema {version}, this one knows {SCHEMA_VERSION})",
            "upgrade Podium",
        )
    return version


def _kept(connection: PostgresConnection) -> dict[str, str]:
    columns = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(:table) AND attnum > 0",
        {"table": f"{SCHEMA}.meta"},
    ).fetchall()
    if not {"name", "value"} <= {column[0] for column in columns}:
        return {}
    return dict(connection.execute("SELECT name, value FROM meta").fetchall())


def _build(connection: PostgresConnection, migrations: Mapping[int, Migration]) -> None:
    # Before the transaction begins: the server ends one in which nothing is heard for three seconds.
    statements = _creation()
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT pg_advisory_xact_lock(:key)", {"key": COMMIT_LOCK})
        # Another process may have been quicker while this one waited for the lock.
        version = schema_version(connection)
        if version == 0:
            _create(connection, statements)
        for old in range(version or SCHEMA_VERSION, SCHEMA_VERSION):
            migrations[old](connection)
        connection.execute(
            "INSERT INTO meta (name, value) VALUES ('mark', :mark), ('schema', :version) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            {"mark": MARK, "version": str(SCHEMA_VERSION)},
        )
        connection.execute("COMMIT")
    except BaseException:
        if not connection.is_lost:
            connection.execute("ROLLBACK")
        raise


def _creation() -> tuple[str, ...]:
    # SQLAlchemy takes a fifth of a second to import and is needed on the first day only.
    from sqlalchemy.dialects import postgresql

    from podium.journal.schema import creation_statements

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return (*_OWN_TABLES, *creation_statements(dialect))


def _create(connection: PostgresConnection, statements: Sequence[str]) -> None:
    # `IF NOT EXISTS` would ask for the right to create one also when it is there.
    (there,) = _one(connection, "SELECT to_regnamespace(:schema) IS NOT NULL", schema=SCHEMA)
    if not there:
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
    for statement in statements:
        connection.execute(statement)


def _must_keep_all_text(connection: PostgresConnection) -> None:
    (encoding,) = _one(connection, "SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StoreUnusable(
            connection.name,
            f"it keeps text as {encoding}, which lacks most characters",
            "make it anew with `createdb --encoding UTF8 --template template0`",
        )


def _one(connection: PostgresConnection, statement: str, **values: Any) -> tuple[Any, ...]:
    row: tuple[Any, ...] = connection.execute(statement, values).fetchone()
    return row
