"""The database on PostgreSQL: made, upgraded, refused, explained. Whatever happens, nothing in it is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import psycopg
import pytest

from podium.core.errors import (
    BadInput,
    PodiumError,
    StoreAway,
    StoreBusy,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
    StoreUnusable,
)
from podium.store import postgres
from podium.store.postgres import PostgresConnection, connect, explain, prepare, schema_version
from podium.store.postgres_connection import name_of, translated
from podium.store.sqlite import SCHEMA_VERSION
from podium.testing import retry_until
from tests.postgres import PostgresServer
from tests.soaking import in_soak


@pytest.fixture
def line(postgres_url: str) -> Iterator[PostgresConnection]:
    connection = connect(postgres_url)
    yield connection
    connection.close()


def tables(line: PostgresConnection) -> set[str]:
    rows = line.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'podium'").fetchall()
    return {row[0] for row in rows}


def password_of(url: str) -> str:
    return urlsplit(url).password or ""


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        (
            "SELECT a FROM b WHERE c = :c AND d > :d_1",
            "SELECT a FROM b WHERE c = %(c)s AND d > %(d_1)s",
        ),
        ("SELECT a::text, ':no', \":no\" FROM b", "SELECT a::text, ':no', \":no\" FROM b"),
        ("SELECT 'it''s :no' WHERE a = :a", "SELECT 'it''s :no' WHERE a = %(a)s"),
        ("SELECT 5 % 2, '%' WHERE a => :a", "SELECT 5 %% 2, '%%' WHERE a => %(a)s"),
    ],
)
def test_names_become_placeholders_and_nothing_else_does(statement: str, meant: str) -> None:
    assert translated(statement) == meant


def test_statements_mean_the_same_after_translation(line: PostgresConnection) -> None:
    row = line.execute("SELECT :a::int % 2, ':a', '%', :b", {"a": 5, "b": "50%"}).fetchone()
    assert row == (1, ":a", "%", "50%")


def test_a_new_database_has_our_tables_our_mark_and_todays_version(
    postgres_url: str, line: PostgresConnection
) -> None:
    assert schema_version(line) == 0
    prepare(postgres_url)
    assert schema_version(line) == SCHEMA_VERSION
    assert {"events", "runs", "steps", "receipts", "meta", "writers"} <= tables(line)


def test_text_is_sorted_byte_by_byte_whatever_the_server_does(
    postgres_url: str, line: PostgresConnection
) -> None:
    prepare(postgres_url)
    for name in ("b", "B", "a", "_", "é"):
        line.execute("INSERT INTO schedules (name, body) VALUES (:name, '')", {"name": name})
    rows = line.execute("SELECT name FROM schedules ORDER BY name").fetchall()
    assert [row[0] for row in rows] == ["B", "_", "a", "b", "é"]


def test_preparing_twice_changes_nothing(
    postgres_url: str, postgres_server: PostgresServer, line: PostgresConnection
) -> None:
    prepare(postgres_url)
    line.execute("INSERT INTO schedules (name, body) VALUES ('kept', '')")
    before = line.execute("SELECT max(oid) FROM pg_class").fetchone()
    prepare(postgres_url)
    assert line.execute("SELECT max(oid) FROM pg_class").fetchone() == before
    assert line.execute("SELECT name FROM schedules").fetchall() == [("kept",)]


_PREPARE = "import sys; from podium.store.postgres import prepare; prepare(sys.argv[1])"


@pytest.mark.soak
@pytest.mark.parametrize("count", [3, in_soak(8)])
def test_processes_that_start_at_once_make_one_schema(
    postgres_url: str, line: PostgresConnection, count: int
) -> None:
    command = [sys.executable, "-c", _PREPARE, postgres_url]
    started = [subprocess.Popen(command) for _ in range(count)]
    assert [process.wait(120) for process in started] == [0] * count
    assert schema_version(line) == SCHEMA_VERSION
    assert line.execute("SELECT count(*) FROM meta").fetchone() == (2,)


def test_a_process_killed_while_it_makes_the_schema_leaves_nothing_of_it(
    postgres_url: str, line: PostgresConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = postgres._create

    def create_and_die(connection: PostgresConnection, statements: Sequence[str]) -> None:
        whole(connection, statements)
        pid = connection.raw.info.backend_pid
        line.execute("SELECT pg_terminate_backend(:pid)", {"pid": pid}).fetchone()

    monkeypatch.setattr(postgres, "_create", create_and_die)
    with pytest.raises(StoreAway):
        prepare(postgres_url)
    assert tables(line) == set()
    monkeypatch.undo()
    prepare(postgres_url)
    assert schema_version(line) == SCHEMA_VERSION


def test_an_older_schema_is_lifted_version_by_version_with_its_rows(
    postgres_url: str, line: PostgresConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(postgres_url)
    line.execute("INSERT INTO schedules (name, body) VALUES ('kept', '')")
    monkeypatch.setattr(postgres, "SCHEMA_VERSION", SCHEMA_VERSION + 2)

    def add(column: str, connection: PostgresConnection) -> None:
        connection.execute(f"ALTER TABLE schedules ADD COLUMN {column} TEXT DEFAULT '{column}'")

    prepare(
        postgres_url,
        {
            SCHEMA_VERSION: lambda connection: add("one", connection),
            SCHEMA_VERSION + 1: lambda connection: add("two", connection),
        },
    )
    assert schema_version(line) == SCHEMA_VERSION + 2
    assert line.execute("SELECT name, one, two FROM schedules").fetchall() == [
        ("kept", "one", "two")
    ]


def test_an_upgrade_that_fails_leaves_the_old_schema(
    postgres_url: str, line: PostgresConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(postgres_url)
    monkeypatch.setattr(postgres, "SCHEMA_VERSION", SCHEMA_VERSION + 1)

    def break_off(connection: PostgresConnection) -> None:
        connection.execute("DROP TABLE schedules")
        connection.execute("SELECT 1 / 0").fetchone()

    with pytest.raises(StoreUnusable, match="division by zero"):
        prepare(postgres_url, {SCHEMA_VERSION: break_off})
    assert schema_version(line) == SCHEMA_VERSION
    assert "schedules" in tables(line)


def test_a_newer_schema_is_refused_and_left_alone(
    postgres_url: str, line: PostgresConnection
) -> None:
    prepare(postgres_url)
    line.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StoreNewer, match="upgrade Podium"):
        prepare(postgres_url)
    assert line.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == ("99",)


@pytest.mark.parametrize(
    "foreign",
    [
        "CREATE TABLE podium.orders (id INT)",
        "CREATE TABLE podium.meta (id INT)",
        "CREATE TABLE podium.meta (name TEXT, value TEXT)",
    ],
)
def test_a_schema_of_another_program_is_refused_and_left_alone(
    postgres_url: str, line: PostgresConnection, foreign: str
) -> None:
    line.execute("CREATE SCHEMA podium")
    line.execute(foreign)
    before = tables(line)
    with pytest.raises(StoreForeign, match="another program"):
        prepare(postgres_url)
    assert tables(line) == before


def test_an_empty_schema_that_somebody_made_for_us_is_used(
    postgres_url: str, line: PostgresConnection
) -> None:
    line.execute("CREATE SCHEMA podium")
    prepare(postgres_url)
    assert schema_version(line) == SCHEMA_VERSION


def other_role(server: PostgresServer, url: str, role: str, password: str = "x-y-z") -> str:
    database = urlsplit(url).path[1:]
    server.administer(f"DROP ROLE IF EXISTS {role}")
    server.administer(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'")
    return f"postgresql://{role}:{password}@127.0.0.1:{server.port}/{database}"


def test_role_that_may_not_create_is_shown_who_must(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    url = other_role(postgres_server, postgres_url, "clerk")
    with pytest.raises(StoreUnusable, match="podium db migrate"):
        prepare(url)


def test_a_role_that_may_read_and_write_rows_needs_no_other_right(
    postgres_url: str, postgres_server: PostgresServer, line: PostgresConnection
) -> None:
    prepare(postgres_url)
    url = other_role(postgres_server, postgres_url, "labourer")
    line.execute("GRANT USAGE ON SCHEMA podium TO labourer")
    line.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA podium TO labourer")
    prepare(url)
    theirs = connect(url)
    theirs.execute("INSERT INTO schedules (name, body) VALUES ('theirs', '')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        theirs.execute("DROP TABLE schedules")
    theirs.close()


def refusal(url: str) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        prepare(url)
    assert password_of(url) not in str(caught.value)
    return caught.value


def test_every_way_a_server_cannot_be_reached_shows_what_to_do(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    right = urlsplit(postgres_url)
    where = f"127.0.0.1:{right.port}"
    wrong_password = refusal(f"postgresql://podium:not-this-one@{where}{right.path}")
    assert isinstance(wrong_password, StoreUnusable)
    assert "password" in str(wrong_password)
    unknown = refusal(f"postgresql://podium:{right.password}@{where}/nowhere")
    assert isinstance(unknown, StoreUnusable)
    assert "createdb" in str(unknown)
    plain = refusal(f"{postgres_url}?sslmode=require")
    assert isinstance(plain, StoreUnusable)
    assert "sslmode" in str(plain)
    nobody = refusal("postgresql://podium:secret-1@127.0.0.1:1/podium")
    assert isinstance(nobody, StoreAway)
    assert "Start the server" in str(nobody)
    nowhere = refusal("postgresql://podium:secret-1@no-such-host.invalid/podium")
    assert isinstance(nowhere, StoreUnusable)
    assert "host" in str(nowhere)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:sec-ret@[::1/podium",
        "postgresql://ada:sec-ret@host:port/podium?sslmoed=require",
        "mysql://ada:sec-ret@host/podium",
        "host=127.0.0.1 password=sec-ret",
        "",
        # Special characters that were not escaped: what is parsed as another part is the password's.
        "postgresql://ada:hunt/sec-ret@host:5432/podium",
        "postgresql://ada:12/sec-ret@host:5432/podium",
        "postgresql://ada:hunt@sec-ret@host:5432/podium",
        "postgresql://ada@host:sec-ret/podium",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(BadInput, match="postgresql://USER") as caught:
        connect(url)
    assert "sec-ret" not in str(caught.value)
    with pytest.raises(BadInput, match="postgresql://USER"):
        name_of(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:sec-ret@one:5432,two:5432/podium",
        "postgresql://ada:sec-ret@one,two/podium",
        "postgresql://ada:sec-ret@/podium?host=one,two",
    ],
)
def test_a_url_of_several_hosts_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="names several hosts") as caught:
        connect(url)
    assert "sec-ret" not in str(caught.value)


def test_a_name_in_messages_holds_neither_password_nor_options() -> None:
    url = "postgresql://ada:p%40ss@db.example:5433/podium?sslmode=require&sslpassword=deep"
    assert name_of(url) == "postgresql://ada@db.example:5433/podium"
    url = "postgresql://db.example/podium?user=ada&password=p%40ss"
    assert name_of(url) == "postgresql://ada@db.example/podium"


def test_a_database_that_can_only_be_read_says_so(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    database = urlsplit(postgres_url).path[1:]
    postgres_server.administer(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(StoreReadOnly, match="primary"):
        prepare(postgres_url)


def test_too_many_connections_are_reported_as_a_crowd(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    url = other_role(postgres_server, postgres_url, "lonely")
    postgres_server.administer("ALTER ROLE lonely CONNECTION LIMIT 1")
    only = connect(url)
    try:
        with pytest.raises(StoreBusy, match="max_connections"):
            prepare(url)
    finally:
        only.close()


def test_a_database_in_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    postgres_server.administer(
        "CREATE DATABASE latin OWNER podium ENCODING 'LATIN1' LOCALE 'C' "
        "LOCALE_PROVIDER 'libc' TEMPLATE template0"
    )
    try:
        with pytest.raises(StoreUnusable, match="LATIN1"):
            prepare(postgres_server.url("latin"))
    finally:
        postgres_server.drop_database("latin")


def test_what_the_server_says_of_itself_becomes_an_error_of_ours(postgres_url: str) -> None:
    kinds = {
        psycopg.errors.DiskFull: StoreFull,
        psycopg.errors.TooManyConnections: StoreBusy,
        psycopg.errors.LockNotAvailable: StoreBusy,
        psycopg.errors.AdminShutdown: StoreAway,
        psycopg.errors.CrashShutdown: StoreAway,
        psycopg.errors.CannotConnectNow: StoreAway,
        psycopg.errors.IdleInTransactionSessionTimeout: StoreAway,
        psycopg.errors.ReadOnlySqlTransaction: StoreReadOnly,
        psycopg.errors.InsufficientPrivilege: StoreUnusable,
        psycopg.errors.UniqueViolation: StoreUnusable,
    }
    for theirs, ours in kinds.items():
        assert type(explain(theirs("words"), postgres_url)) is ours, theirs


def test_a_nul_character_is_refused_in_words_and_the_transaction_goes_on(
    postgres_url: str, line: PostgresConnection
) -> None:
    prepare(postgres_url)
    line.execute("BEGIN")
    with pytest.raises(BadInput, match="NUL"):
        line.execute("INSERT INTO schedules (name, body) VALUES (:name, '')", {"name": "a\0b"})
    line.execute("INSERT INTO schedules (name, body) VALUES (:name, '')", {"name": "ab"})
    line.execute("COMMIT")
    assert line.execute("SELECT name FROM schedules").fetchall() == [("ab",)]


async def test_who_waits_for_a_migration_finds_it_made(
    postgres_url: str, line: PostgresConnection
) -> None:
    statements = postgres._creation()
    line.execute("SET idle_in_transaction_session_timeout = 0")
    line.execute("BEGIN")
    line.execute("SELECT pg_advisory_xact_lock(:key)", {"key": postgres.COMMIT_LOCK}).fetchone()
    waiting = threading.Thread(target=prepare, args=(postgres_url,))
    waiting.start()
    watch = connect(postgres_url)

    def waits() -> bool:
        row = watch.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchone()
        return bool(row[0])

    await retry_until(waits)
    postgres._create(line, statements)
    line.execute(
        "INSERT INTO meta (name, value) VALUES ('mark', 'podium'), ('schema', :version)",
        {"version": str(SCHEMA_VERSION)},
    )
    line.execute("COMMIT")
    waiting.join()
    assert schema_version(watch) == SCHEMA_VERSION
    watch.close()
