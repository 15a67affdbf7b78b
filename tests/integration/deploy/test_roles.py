"""`deploy/roles.sql` on a real server: each role can do its work, and nothing beside it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from podium.core.work import RunStatus
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Transaction
from podium.store.postgres import prepare
from tests.integration.deploy.deploy_harness import (
    ROLES,
    give_passwords,
    run_roles_sql,
    started_server,
    url_as,
)
from tests.postgres import PostgresServer
from tests.unit.contract.nouns import NOON, a_note, a_receipt, a_run

psycopg = pytest.importorskip(
    "psycopg", reason="psycopg is not installed: pip install 'podium[distributed]'"
)
dbos = pytest.importorskip(
    "dbos", reason="dbos is not installed: pip install 'podium[distributed]'"
)

# It writes to stderr only while nobody else listens to its logger.
logging.getLogger("dbos").addHandler(logging.NullHandler())

LATER = """
CREATE TABLE podium.later (id bigint GENERATED ALWAYS AS IDENTITY, word text DEFAULT 'x');
CREATE SEQUENCE dbos.later;
CREATE FUNCTION podium.later() RETURNS int LANGUAGE sql AS 'SELECT 7'
"""


class Database(NamedTuple):
    """A database whose roles are set up and whose tables the owner has made."""

    server: PostgresServer
    name: str

    def url(self, role: str) -> str:
        return url_as(self.server, role, self.name)

    def execute(self, role: str, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(role), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def rights(self, role: str) -> set[tuple[str, str]]:
        """Schema and right, for every table on which the role has any."""
        asked = f"SELECT table_schema, privilege_type FROM information_schema.table_privileges WHERE grantee = '{role}'"
        return {(row[0], row[1]) for row in self.server.administer(asked, self.name)}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with started_server() as server:
        yield server


@pytest.fixture(scope="module")
def database(server: PostgresServer) -> Database:
    database = Database(server, server.create_database())
    run_roles_sql(server.admin_url(database.name))
    give_passwords(server)
    migrate_as_owner(database)
    return database


def migrate_as_owner(database: Database) -> None:
    prepare(database.url("podium_owner"))
    dbos.DBOS.migrate(database.url("podium_owner"))


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE podium.events",
        "DROP SCHEMA podium CASCADE",
        "DROP INDEX podium.runs_by_tail",
        "DROP FUNCTION dbos.notifications_function CASCADE",
        "ALTER TABLE podium.receipts DROP COLUMN body",
        "ALTER TABLE podium.receipts DISABLE TRIGGER ALL",
        "ALTER TABLE podium.receipts OWNER TO podium_worker",
        "TRUNCATE podium.receipts",
        "TRUNCATE dbos.workflow_status",
        "CREATE TABLE podium.mine (id int)",
        "CREATE TABLE public.mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "CREATE SCHEMA mine",
        "CREATE INDEX mine ON podium.events (at)",
        "CREATE FUNCTION podium.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TRIGGER mine BEFORE INSERT ON podium.events EXECUTE FUNCTION dbos.notifications_function()",
        "CREATE ROLE mine",
        "CREATE DATABASE mine",
        "SET ROLE podium_owner",
        "COPY podium.events TO PROGRAM 'cat'",
        "COPY podium.events TO '/tmp/events'",
        "SELECT rolpassword FROM pg_authid",
    ],
)
def test_a_worker_can_change_rows_and_nothing_else(database: Database, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.execute("podium_worker", statement)


def test_a_worker_has_the_same_four_rights_on_every_table(database: Database) -> None:
    rights = {"SELECT", "INSERT", "UPDATE", "DELETE"}
    expected = {(schema, right) for schema in ("podium", "dbos") for right in rights}
    assert database.rights("podium_worker") == expected
    count = "SELECT count(*) FROM pg_tables WHERE schemaname IN ('podium', 'dbos')"
    usable = f"{count} AND has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'DELETE')"
    assert database.execute("podium_worker", usable) == database.execute("podium_worker", count)


async def test_the_store_does_all_its_work_as_podium_worker(
    database: Database, tmp_path: Path
) -> None:
    from podium.store.postgres_store import PostgresStore  # it needs psycopg

    store = await PostgresStore.open(
        database.url("podium_worker"),
        folder=tmp_path,
        clock=SystemClock(),
        ids=SystemIds(),
        key_dir=tmp_path / "vault",
    )
    run = a_run(status=RunStatus.SUCCEEDED, finished_at=NOON)

    def work(tx: Transaction) -> None:
        tx.add_run(run)
        tx.append(run.id, a_note())
        tx.add_receipt(a_receipt(run.id))

    try:
        await store.write(work)
        assert len(await store.read(lambda view: view.receipts(run.id))) == 1
        await store.write(lambda tx: tx.drop_runs([run.id]))
        assert await store.read(lambda view: view.run(run.id)) is None
    finally:
        await store.close()


def test_the_engine_hands_out_runs_as_podium_worker(database: Database) -> None:
    client = dbos.DBOSClient(system_database_url=database.url("podium_worker"))
    try:
        queued = client.enqueue({"queue_name": "default", "workflow_name": "greet"}, "Ada")
        client.send(queued.get_workflow_id(), "go", "signal")
        client.cancel_workflow(queued.get_workflow_id())
        assert [found.status for found in client.list_workflows()] == ["CANCELLED"]
        client.delete_workflow(queued.get_workflow_id())
        assert client.list_workflows() == []
    finally:
        client.destroy()


def test_a_schema_that_is_current_is_ready_for_a_worker(database: Database) -> None:
    prepare(database.url("podium_worker"))
    dbos.DBOS.migrate(database.url("podium_worker"))
    assert database.execute("podium_worker", "SELECT count(*) FROM podium.runs") == [(0,)]


def test_a_viewer_reads_and_cannot_write(database: Database) -> None:
    assert database.rights("podium_viewer") == {("podium", "SELECT"), ("dbos", "SELECT")}
    assert database.execute("podium_viewer", "SELECT count(*) FROM podium.receipts")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.execute("podium_viewer", "DELETE FROM podium.runs")
    callable_ones = "SELECT count(*) > 0 FROM pg_proc WHERE pronamespace = 'dbos'::regnamespace AND has_function_privilege(oid, 'EXECUTE')"
    assert database.execute("podium_viewer", callable_ones) == [(False,)]
    assert database.execute("podium_worker", callable_ones) == [(True,)]


def test_what_a_later_migration_makes_is_covered(database: Database) -> None:
    database.execute("podium_owner", LATER)
    try:
        database.execute("podium_worker", "INSERT INTO podium.later DEFAULT VALUES")
        worked = "SELECT podium.later(), nextval('dbos.later'), word FROM podium.later"
        assert database.execute("podium_worker", worked) == [(7, 1, "x")]
        assert database.execute("podium_viewer", "SELECT word FROM podium.later") == [("x",)]
        for statement in ("TRUNCATE podium.later", "SELECT setval('dbos.later', 1)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                database.execute("podium_worker", statement)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            database.execute("podium_viewer", "SELECT podium.later()")
    finally:
        names = "DROP TABLE podium.later; DROP SEQUENCE dbos.later; DROP FUNCTION podium.later()"
        database.execute("podium_owner", names)


def test_running_it_again_takes_back_what_was_granted_by_hand(database: Database) -> None:
    admin = database.server.admin_url(database.name)
    before = {role: database.rights(role) for role in ROLES}
    database.server.administer("GRANT ALL ON podium.receipts TO podium_worker", database.name)
    database.server.administer("GRANT CREATE ON SCHEMA podium TO podium_viewer", database.name)
    run_roles_sql(admin)
    assert {role: database.rights(role) for role in ROLES} == before
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.execute("podium_viewer", "CREATE TABLE podium.mine (id int)")


def test_other_roles_of_the_server_cannot_even_connect(database: Database) -> None:
    database.server.administer("CREATE ROLE stranger LOGIN PASSWORD 'stranger'")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        database.execute("stranger", "SELECT 1")


def test_an_administrator_without_superpowers_can_run_it(server: PostgresServer) -> None:
    server.administer("CREATE ROLE keeper LOGIN CREATEROLE PASSWORD 'keeper'")
    server.administer("CREATE DATABASE kept OWNER keeper")
    run_roles_sql(url_as(server, "keeper", "kept"))
    run_roles_sql(url_as(server, "keeper", "kept"))
    give_passwords(server)
    kept = Database(server, "kept")
    migrate_as_owner(kept)
    assert kept.execute("podium_worker", "SELECT count(*) FROM podium.runs") == [(0,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        kept.execute("podium_worker", "DROP TABLE podium.runs")
