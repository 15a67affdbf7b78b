"""PostgreSQL: preparing a database, and its errors as Podium's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from podium.core.errors import (
    PodiumError,
    StoreAway,
    StoreBusy,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
    StoreUnusable,
)
from podium.store.postgres_connection import (
    MAX_WAIT_SECONDS,
    SCHEMA,
    PostgresConnection,
    connect,
    name_of,
)
from podium.store.schema import POSTGRESQL, creation_statements
from podium.store.sqlite import SCHEMA_VERSION

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
    """Tell whether the same may go through in a while, on another connection."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate
    if state is None:
        # The driver itself noticed: no server, a closed socket, a broken pipe.
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith(_AWAY + _AGAIN + _CROWDED)


def blames_statement(error: BaseException) -> bool:
    """Tell whether it is the fault of what was asked, and not of the database's state."""
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
    name, message = name_of(url), _message(error)
    state = error.sqlstate or _state_of(message)
    if state.startswith(_FULL):
        return StoreFull(
            name,
            f"the server has no space left ({message}); this write failed, all earlier ones are safe",
            "free space there and run the same command again",
        )
    if state.startswith(_CROWDED):
        return StoreBusy(
            f"{name}: the server accepts no more connections ({message}); close some, or raise max_connections"
        )
    if state in ("55P03", "57014", *_AGAIN):
        return StoreBusy(
            f"{name}: another session kept it locked for {MAX_WAIT_SECONDS} s ({message}); "
            "nothing was lost, run the same command again"
        )
    if state.startswith(_AWAY):
        return StoreAway(
            f"{name}: the server cannot be reached ({message}); nothing that was stored is lost. "
            "Start the server, or correct PODIUM_DATABASE_URL"
        )
    if state in _REMEDIES:
        problem, remedy = _REMEDIES[state]
        kind = StoreReadOnly if state == "25006" else StoreUnusable
        return kind(name, f"{problem} ({message})", remedy)
    return StoreUnusable(name, f"the database failed ({message})", "check it with `podium doctor`")


_REMEDIES = {
    "25006": (
        "it is read-only: a standby, or a database set to read-only",
        "name the primary server in PODIUM_DATABASE_URL",
    ),
    "28P01": (
        "the password is wrong, or the role does not exist",
        "correct it in PODIUM_DATABASE_URL; write special characters as %-escapes",
    ),
    "28000": (
        "the server rejects this role from this machine",
        "correct the role in PODIUM_DATABASE_URL, or allow it in the server's pg_hba.conf",
    ),
    "3D000": (
        "the database does not exist",
        "create it with `createdb`, or correct its name in PODIUM_DATABASE_URL",
    ),
    "42501": (
        "the role lacks a permission for this",
        "reading needs the role podium_viewer, working podium_worker, `podium db migrate` podium_owner: name "
        "the one that is needed in PODIUM_DATABASE_URL. If the schemas were created again, run deploy/roles.sql "
        "again to grant the permissions",
    ),
    "42P01": (
        "a table is missing",
        "run `podium db migrate` as the owner of the database",
    ),
    "TLS": (
        "no secure connection could be established",
        "set sslmode and sslrootcert in PODIUM_DATABASE_URL as the server's certificate requires",
    ),
    "name": (
        "the host name cannot be resolved",
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


def _state_of(message: str) -> str:
    return next((state for pattern, state in _REFUSALS if pattern.search(message)), "08")


def _message(error: psycopg.Error) -> str:
    """The first thing the server or the driver said, in one line that is not too long."""
    text = error.diag.message_primary or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message = " ".join(lines[:2]) if lines else type(error).__name__
    message = message.removeprefix("connection failed: ")
    return message if len(message) <= 300 else f"{message[:300]}…"


__all__ = [
    "APPLICATION_NAME",
    "COMMIT_LOCK",
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

APPLICATION_NAME = "podium"
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
    settings = _settings(connection) if ours else {}
    if settings.get("mark") != APPLICATION_NAME:
        raise StoreForeign(
            connection.name,
            f"its schema {SCHEMA!r} belongs to another program",
            "name another database",
        )
    version = int(settings.get("schema", "0"))
    if version > SCHEMA_VERSION:
        raise StoreNewer(
            connection.name,
            f"a newer Podium made it (schema {version}, this one knows {SCHEMA_VERSION})",
            "upgrade Podium",
        )
    return version


def _settings(connection: PostgresConnection) -> dict[str, str]:
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
            {"mark": APPLICATION_NAME, "version": str(SCHEMA_VERSION)},
        )
        connection.execute("COMMIT")
    except BaseException:
        if not connection.is_lost:
            connection.execute("ROLLBACK")
        raise


def _creation() -> tuple[str, ...]:
    return (*_OWN_TABLES, *creation_statements(POSTGRESQL))


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
            f"its encoding is {encoding}, which lacks most characters",
            "create it again with `createdb --encoding UTF8 --template template0`",
        )


def _one(connection: PostgresConnection, statement: str, **values: Any) -> tuple[Any, ...]:
    row: tuple[Any, ...] = connection.execute(statement, values).fetchone()
    return row
