"""Differences between the databases: choice, preparation, protection and failures."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from packs.roofing.database import (
    TABLES,
    Conflict,
    Insert,
    Kind,
    Update,
    health,
    open_database,
    read_row,
)
from packs.roofing.database.migrating import migrations_of
from packs.roofing.database.sqlite import SqliteBackend

from podium.core.errors import ToolBroke
from podium.testing import retry_until
from podium.tools.packs import PackScope
from tests.integration.packs.roofing.postgrest import PostgrestServer, postgrest
from tests.postgres import PostgresServer
from tests.unit.packs.roofing.roofing_harness import FOLDER, pack_scope

SQLITE_TYPES = {
    Kind.TEXT: "TEXT",
    Kind.INTEGER: "INTEGER",
    Kind.REAL: "REAL",
    Kind.DATE: "TEXT",
    Kind.TIMESTAMP: "TEXT",
    Kind.JSON: "TEXT",
}
POSTGRES_TYPES = {
    Kind.TEXT: "text",
    Kind.INTEGER: "bigint",
    Kind.REAL: "double precision",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp with time zone",
    Kind.JSON: "jsonb",
}

NOTE = Insert("notes", {"id": "note_1", "text": "hello"})


def declared(types: dict[Kind, str]) -> dict[str, dict[str, str]]:
    return {
        table.name: {name: types[kind] for name, kind in table.columns.items()}
        for table in TABLES.values()
    }


@pytest.fixture
def project(postgres_url: str) -> Iterator[PostgrestServer]:
    with postgrest(postgres_url) as server:
        yield server


def at_supabase(tmp_path: Path, project: PostgrestServer, **others: Any) -> PackScope:
    settings = {"SUPABASE_URL": project.url, "SUPABASE_SERVICE_ROLE_KEY": project.key}
    return pack_scope(tmp_path, settings, **others)


async def test_the_schema_is_what_the_sqlite_migrations_make(tmp_path: Path) -> None:
    async with open_database(pack_scope(tmp_path)):
        pass
    with sqlite3.connect(tmp_path / "roofing.db") as connection:
        found = {
            name: {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({name})")}
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if name != "roofing_migrations"
        }
    connection.close()
    assert found == declared(SQLITE_TYPES)


async def test_the_schema_is_what_the_postgresql_migrations_make(
    tmp_path: Path, postgres_url: str
) -> None:
    async with open_database(pack_scope(tmp_path, {"ROOFING_DATABASE_URL": postgres_url})):
        pass
    with psycopg.connect(postgres_url) as connection:
        found: dict[str, dict[str, str]] = {}
        for table, column, kind in connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = 'public' ORDER BY ordinal_position"
        ):
            found.setdefault(table, {})[column] = kind
        (apply,) = connection.execute(
            "SELECT prosrc FROM pg_proc WHERE proname = 'roofing_apply'"
        ).fetchone() or ("",)
        (export,) = connection.execute("SELECT roofing_export()").fetchone() or ({},)
    del found["roofing_migrations"]
    assert found == declared(POSTGRES_TYPES)
    changeable = re.search(r"ARRAY\[(.*?)\]", apply, re.DOTALL)
    assert changeable is not None
    assert set(re.findall(r"'(\w+)'", changeable[1])) == set(TABLES) - {"performed"}
    assert set(export) == set(TABLES) | {"roofing_migrations"}


def test_both_dialects_allow_the_same_values() -> None:
    def checks(dialect: str) -> list[str]:
        files = sorted((FOLDER / "migrations" / dialect).glob("*.sql"))
        script = "".join(file.read_text() for file in files)
        found = re.findall(r"CHECK \((?!json_valid)(.*?)\)+[,;\n]", script)
        return sorted(found)

    assert checks("sqlite") == checks("postgresql")
    assert len(checks("sqlite")) > 30


async def test_a_migration_that_breaks_leaves_nothing_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    (folder / "sqlite").mkdir(parents=True)
    (folder / "sqlite" / "0001_first.sql").write_text("CREATE TABLE a (x TEXT);\n")
    broken = "CREATE TABLE b (x TEXT);\n-- a comment; with a semicolon\nCREATE TABLE a (x TEXT);\n"
    (folder / "sqlite" / "0002_second.sql").write_text(broken)
    backend = SqliteBackend(tmp_path / "roofing.db", migrations=folder)
    with pytest.raises(ToolBroke, match="table a already exists"):
        backend.prepare()
    assert backend.migrations() == ["0001_first"]
    (folder / "sqlite" / "0002_second.sql").write_text("CREATE TABLE b (x TEXT);\n")
    mended = SqliteBackend(tmp_path / "roofing.db", migrations=folder)
    mended.prepare()
    assert mended.migrations() == ["0001_first", "0002_second"]


async def test_a_database_of_a_newer_pack_is_left_alone(tmp_path: Path, postgres_url: str) -> None:
    record = "INSERT INTO roofing_migrations (name) VALUES ('9999_later')"
    scope = pack_scope(tmp_path)
    async with open_database(scope):
        pass
    with sqlite3.connect(tmp_path / "roofing.db") as connection:
        connection.execute(record)
    connection.close()
    with psycopg.connect(postgres_url) as server:
        server.execute("CREATE TABLE roofing_migrations (name text, applied_at timestamptz)")
        server.execute(record)
    for item in (scope, pack_scope(tmp_path, {"ROOFING_DATABASE_URL": postgres_url})):
        with pytest.raises(ToolBroke, match=r"newer roofing pack \(it has 9999_later\)"):
            async with open_database(item):
                pass


async def test_a_sqlite_file_is_private_and_in_wal_mode(tmp_path: Path) -> None:
    async with open_database(pack_scope(tmp_path)) as db:
        await db.apply("k", [NOTE], {})
    file = tmp_path / "roofing.db"
    assert file.stat().st_mode & 0o777 == 0o600
    connection = sqlite3.connect(file)
    try:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    finally:
        connection.close()


async def test_proof_read_before_first_use_finds_no_row_and_makes_no_file(tmp_path: Path) -> None:
    assert await read_row("leads", {"id": "x"}, (), pack_scope(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


async def test_file_that_is_no_database_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "roofing.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(ToolBroke, match="is not a readable database"):
        async with open_database(pack_scope(tmp_path)):
            pass


async def test_busy_file_is_waited_for_and_then_reported_as_busy(tmp_path: Path) -> None:
    scope = pack_scope(tmp_path, timeout_seconds=0.1)
    async with open_database(scope) as db:
        holder = sqlite3.connect(tmp_path / "roofing.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(ToolBroke, match="busy; nothing was changed: try again"):
                await db.apply("k", [NOTE], {})
        finally:
            holder.close()
        await db.apply("k", [NOTE], {})


def test_a_read_only_backend_cannot_write(tmp_path: Path, postgres_url: str) -> None:
    from packs.roofing.database.backend import Batch
    from packs.roofing.database.postgresql import PostgresBackend

    batch = Batch("k", "t", "2026-11-16T09:30:00+00:00", (), {})
    SqliteBackend(tmp_path / "roofing.db").prepare()
    PostgresBackend(postgres_url).prepare()
    for backend in (
        SqliteBackend(tmp_path / "roofing.db", read_only=True),
        PostgresBackend(postgres_url, read_only=True),
    ):
        with pytest.raises(ToolBroke, match=r"(?i)read.?only"):
            backend.apply(batch)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"SUPABASE_URL": "https://x.supabase.co"}, "set SUPABASE_SERVICE_ROLE_KEY"),
        ({"SUPABASE_SERVICE_ROLE_KEY": "hush"}, "set SUPABASE_URL"),
        ({"ROOFING_DATABASE_URL": "mysql://root:hush@db/x"}, "must begin with postgresql://"),
        ({"SUPABASE_URL": "http://x.example", "SUPABASE_SERVICE_ROLE_KEY": "hush"}, "https://"),
        ({"SUPABASE_URL": "x.supabase.co", "SUPABASE_SERVICE_ROLE_KEY": "hush"}, "is not a URL"),
        ({"SUPABASE_URL": "https://[x", "SUPABASE_SERVICE_ROLE_KEY": "hush"}, "is not a URL"),
        ({"SUPABASE_URL": "https://a:hush@x.co", "SUPABASE_SERVICE_ROLE_KEY": "k"}, "password"),
        ({"SUPABASE_URL": "https://x.co", "SUPABASE_SERVICE_ROLE_KEY": "hush\r\nX: y"}, "no key"),
        ({"ROOFING_DATABASE_URL": "postgresql://me:hush@127.0.0.1:1/x"}, "cannot be reached"),
        ({"ROOFING_DATABASE_URL": "postgresql://me:hush@127.0.0.1:zz/x"}, "cannot be reached"),
        ({"ROOFING_DATABASE_URL": "postgresql://me:hush%zz@127.0.0.1/x"}, "not a valid URL"),
    ],
)
async def test_settings_that_cannot_work_are_named_and_never_shown(
    tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ToolBroke, match=words) as caught:
        async with open_database(pack_scope(tmp_path, settings)):
            pass
    assert "hush" not in str(caught.value)


async def test_a_missing_driver_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The driver is installed wherever this suite runs; hiding it is the only way to be without.
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ToolBroke, match=r"pip install 'podium\[distributed\]'"):
        async with open_database(
            pack_scope(tmp_path, {"ROOFING_DATABASE_URL": "postgresql://127.0.0.1:1/x"})
        ):
            pass


async def test_project_without_the_tables_is_shown_which_files_to_run(
    tmp_path: Path, project: PostgrestServer
) -> None:
    async with open_database(at_supabase(tmp_path, project)) as db:
        for attempt in (db.rows("leads"), db.apply("k", [NOTE], {})):
            with pytest.raises(ToolBroke, match="run the files of the pack's folder migrations/"):
                await attempt
        health_report = await health(db)
    assert health_report["reachable"] is False
    assert "migrations/postgresql" in health_report["problem"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((502, b"<html>Bad gateway</html>"), "HTTP 502; try again"),
        ((404, b"<html>not found</html>"), "HTTP 404"),
        ((200, b"<html>captive portal</html>"), "not JSON"),
        ((200, b'{"a": 1}'), "a list of rows"),
        ((200, b"[]"), "did not say how many"),
        ((302, b""), "HTTP 302"),
        ((403, b'{"code": "42501", "message": "permission denied"}'), "does not accept the key"),
        ((400, b'{"code": "22P02", "message": "odd"}'), r"rejected the request \(22P02\): odd"),
        ((400, b"[1]"), "HTTP 400"),
        ((500, b'{"code": "57014", "message": "canceling"}'), "took too long"),
        ((500, b'{"code": "40P01", "message": "deadlock"}'), "in conflict; nothing was"),
        (
            (409, b'{"details": "{\\"table\\": \\"leads\\", \\"id\\": \\"x\\"}"}'),
            "no row 'x' in leads",
        ),
    ],
)
async def test_possible_answers_of_a_proxy_for_a_project_are_reported_in_words(
    tmp_path: Path, project: PostgrestServer, answer: tuple[int, bytes], words: str
) -> None:
    project.broken_answer = answer
    async with open_database(at_supabase(tmp_path, project)) as db:
        with pytest.raises(ToolBroke, match=words):
            await db.rows("leads")


async def test_wrong_key_is_reported_and_never_shown(
    tmp_path: Path, project: PostgrestServer
) -> None:
    settings = {"SUPABASE_URL": project.url, "SUPABASE_SERVICE_ROLE_KEY": "wrong-but-secret"}
    async with open_database(pack_scope(tmp_path, settings)) as db:
        with pytest.raises(ToolBroke, match="does not accept the key") as caught:
            await db.rows("leads")
    assert "wrong-but-secret" not in str(caught.value)


async def test_a_row_that_somebody_is_changing_is_waited_for_before_it_is_judged(
    tmp_path: Path, postgres_url: str
) -> None:
    lead = Insert("leads", {"id": "lead_1", "name": "Sarah"})
    won = Update("leads", "lead_1", {"stage": "won"}, {"stage": "new"})
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    waiting += " AND datname = current_database()"

    async with open_database(pack_scope(tmp_path, {"ROOFING_DATABASE_URL": postgres_url})) as db:
        await db.apply("1", [lead], {})
        with psycopg.connect(postgres_url) as other, psycopg.connect(postgres_url) as watcher:
            watcher.autocommit = True
            other.execute("UPDATE leads SET stage = 'lost' WHERE id = 'lead_1'")
            applying = asyncio.create_task(db.apply("2", [won], {}))
            await retry_until(lambda: watcher.execute(waiting.encode()).fetchone() == (1,))
            other.commit()
            with pytest.raises(Conflict, match="stage of 'lead_1' in leads is 'lost', not 'new'"):
                await applying


async def test_the_web_gets_at_nothing_and_the_service_key_at_everything(
    own_postgres: PostgresServer,
) -> None:
    """On a server set up as Supabase's: three roles, and everything in `public` granted to them."""
    name = own_postgres.create_database()
    own_postgres.administer("CREATE ROLE anon")
    own_postgres.administer("CREATE ROLE authenticated")
    own_postgres.administer("CREATE ROLE service_role BYPASSRLS")
    for what in ("TABLES", "FUNCTIONS"):
        own_postgres.administer(
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON {what}"
            " TO anon, authenticated, service_role",
            name,
        )
    for migration in migrations_of("postgresql"):
        own_postgres.administer(migration.script, name)
    guarded = "SELECT bool_and(relrowsecurity) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    assert own_postgres.administer(guarded, name) == [(True,)]
    applied = "SELECT roofing_apply('k', 't', now(), '[{}]', '{{}}')"
    change = '{"act": "insert", "table": "notes", "id": "n", "expecting": {}, "values": '
    stamps = '"created_at": "2026-11-16T00:00Z", "updated_at": "2026-11-16T00:00Z"'
    call = applied.replace("{}", change + '{"id": "n", "text": "x", ' + stamps + "}}", 1)
    call = call.replace("'{{}}'", "'{}'")
    with psycopg.connect(own_postgres.admin_url(name)) as connection:
        connection.execute("SET LOCAL ROLE service_role")
        connection.execute(call.encode())
    for role in ("anon", "authenticated"):
        with psycopg.connect(own_postgres.admin_url(name), autocommit=True) as connection:
            connection.execute(f"SET ROLE {role}".encode())
            for table in (*TABLES, "roofing_migrations"):
                found = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
                assert found == (0,), f"{role} reads {table}"
            for statement in (call, "SELECT roofing_export()"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())
    assert own_postgres.administer("SELECT count(*) FROM notes", name) == [(1,)]
