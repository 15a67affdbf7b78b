"""`podium db`, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.core.work import Run, RunStatus, WorkerHeartbeat
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_receipts import RUN, perform
from tests.postgres import PostgresServer


def database(cli: CommandRunner) -> Path:
    return cli.project / ".podium" / "podium.db"


def edit(cli: CommandRunner, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(database(cli))) as connection:
        connection.execute(statement, values)
        connection.commit()


@pytest.fixture
def filled(cli: CommandRunner) -> CommandRunner:
    """A project with a run, its events and two receipts."""
    perform(cli, "a", "b")
    cli.add_run(run_id=RUN)
    return cli


def test_a_new_project_is_migrated_from_nothing(cli: CommandRunner) -> None:
    behind = cli.run("db", "migrate", "--check")
    assert behind.code == 1
    assert "no Podium schema, needs 2; run `podium db migrate`" in behind.out
    assert not database(cli).exists()
    assert cli.run("db", "migrate", "--json").json["migrated"]
    result = cli.run("db", "migrate", "--check")
    assert (result.code, result.out) == (0, f"{database(cli)}: schema 2, up to date\n")


def test_a_project_of_an_older_podium_is_lifted(filled: CommandRunner) -> None:
    edit(filled, "DROP INDEX runs_by_end")
    edit(filled, "ALTER TABLE runs DROP COLUMN finished_at")
    edit(filled, "PRAGMA user_version = 1")
    assert filled.run("db", "migrate", "--check").code == 1
    assert filled.run("db", "check").code == 1
    result = filled.run("db", "migrate")
    assert (result.code, result.out) == (0, f"{database(filled)}: schema 1 → schema 2\n")
    assert filled.run("db", "check").code == 0


def test_a_sound_project_is_found_sound(filled: CommandRunner) -> None:
    result = filled.run("db", "check")
    assert (result.code, result.err) == (0, "")
    assert "rows read: sound" in result.out


BREAKING: list[tuple[str, str]] = [
    ("UPDATE runs SET body = '{}'", "runs run_00000000000070008000feedface0001: it cannot be read"),
    (
        "UPDATE runs SET status = 'failed'",
        "its column status is 'failed', but its body has another value",
    ),
    ("UPDATE calls SET body = 'no json'", "it cannot be read"),
    ("DELETE FROM events WHERE seq = 2", "events are missing: they are numbered 1 to"),
    ("UPDATE events SET position = 1 WHERE seq = 3", "event 3 was committed before its"),
    ("DELETE FROM receipts WHERE number = 2", "receipts run_0000"),
    ("DELETE FROM receipts", "removed: all of its receipts are missing (2)"),
    (
        "INSERT INTO signals (id, run_id, name, body) VALUES ('s', 'run_x', 'n', '{\"id\":\"s\","
        '"run_id":"run_x","name":"n","sent_at":"2026-01-01T00:00:00Z"}\')',
        "signals run_x: it has signals, but the run does not exist",
    ),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("statement", "words"), BREAKING)
def test_what_was_broken_is_found_and_named(
    filled: CommandRunner, statement: str, words: str
) -> None:
    edit(filled, statement)
    result = filled.run("db", "check")
    assert result.code == 1
    assert words in result.out
    found = filled.run("db", "check", "--json")
    assert found.code == 1
    assert found.json["sound"] is False


@pytest.mark.soak
def test_faults_without_end_are_counted(filled: CommandRunner) -> None:
    for number in range(300):
        edit(filled, "INSERT INTO schedules (name, body) VALUES (?, '{')", f"s{number}")
    response = filled.run("db", "check", "--json").json
    assert (len(response["faults"]), response["more_faults"]) == (200, 100)


def test_a_project_moves_to_postgresql_and_back(filled: CommandRunner, postgres_url: str) -> None:
    there = filled.run("db", "copy", "--to", postgres_url, "--json")
    assert there.code == 0, there.err
    assert (there.json["chains"], there.json["proved"], there.json["chain_faults"]) == (1, True, [])
    assert filled.run("db", "check", "--database", postgres_url).code == 0
    back = filled.project / "back.db"
    result = filled.run("db", "copy", "--from", postgres_url, "--to", str(back))
    assert result.code == 0
    assert "receipts of 1 run: verified" in result.out
    assert "verified" in result.out
    assert filled.run("db", "check", "--database", str(back)).code == 0


def test_the_project_goes_on_where_it_was_copied_to(
    filled: CommandRunner, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = filled.run("show", RUN, "--json").json
    assert filled.run("db", "copy", "--to", postgres_url).code == 0
    database(filled).rename(filled.project / "old.db")
    monkeypatch.setenv("PODIUM_DATABASE_URL", postgres_url)
    assert filled.run("show", RUN, "--json").json["run"] == before["run"]
    assert filled.run("receipts", "verify").out == "2 receipts of 1 run: sound\n"
    assert filled.run("db", "migrate", "--check").code == 0


@pytest.mark.soak
def test_a_project_comes_back_to_a_host_that_never_saw_its_receipts_and_is_sound_there(
    filled: CommandRunner, postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filled.run("db", "copy", "--to", postgres_url).code == 0
    key = next(filled.home.rglob("receipt.key"))
    (tmp_path / "elsewhere").mkdir()
    other = CommandRunner(tmp_path / "elsewhere", capsys)
    names = {"PODIUM_HOME": str(other.home), "PODIUM_RECEIPT_KEY": str(key)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in names.items():
            patch.setenv(name, value)
        patch.chdir(other.project)
        result = other.run("db", "copy", "--from", postgres_url)
        assert result.code == 0, result.err
        assert "receipts of 1 run: verified" in result.out
        assert other.run("receipts", "verify").out == "2 receipts of 1 run: sound\n"
        assert other.run("db", "check").code == 0
        found = {check["name"]: check for check in other.run("doctor", "--json").json["checks"]}
        assert (found["heads"]["state"], found["chains"]["state"]) == ("ok", "ok")
        edit(other, "DELETE FROM receipts WHERE number = 2")
        assert other.run("receipts", "verify").code == 1


@pytest.mark.soak
def test_a_chain_that_is_not_sound_is_copied_and_not_vouched_for(
    filled: CommandRunner, postgres_url: str, postgres_server: PostgresServer
) -> None:
    assert filled.run("db", "copy", "--to", postgres_url).code == 0
    postgres_server.administer(
        "UPDATE podium.receipts SET body = replace(body, 'write_file', 'read_file') "
        "WHERE number = 2",
        postgres_url.rpartition("/")[2],
    )
    heads = next(filled.home.rglob("heads"))
    (heads / RUN).unlink()
    back = str(filled.project / "back.db")
    result = filled.run("db", "copy", "--from", postgres_url, "--to", back)
    assert f"receipts, also in the source: run {RUN}: forged" in result.out
    assert not (heads / RUN).exists()


def test_queued_runs_are_in_the_queues_of_the_server_they_were_copied_to(
    cli: CommandRunner, postgres_server: PostgresServer, postgres_url: str
) -> None:
    queued = Run(id=RUN, flow="f", queue="work", created_at=datetime.now(UTC))

    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: tx.add_run(queued))

    cli.within(work)
    assert cli.run("db", "copy", "--to", postgres_url).code == 0
    found = postgres_server.administer(
        "SELECT queue_name, status FROM dbos.workflow_status", postgres_url.rpartition("/")[2]
    )
    assert found == [("work", "ENQUEUED")]


def test_a_machine_with_another_key_is_refused_where_receipts_were_copied_to(
    filled: CommandRunner, postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert filled.run("db", "copy", "--to", postgres_url).code == 0
    other = tmp_path / "other.key"
    other.write_bytes(b"another key of thirty-two bytes.")
    monkeypatch.setenv("PODIUM_RECEIPT_KEY", str(other))
    monkeypatch.setenv("PODIUM_DATABASE_URL", postgres_url)
    assert "sealed with another key" in filled.run("receipts", "verify").err
    assert "the key they were sealed with is missing" in filled.run("db", "check").out
    result = filled.run("db", "copy", "--to", str(tmp_path / "back.db"))
    assert result.code == 0
    assert "receipts of 1 run: equal, but not verified: the key is missing" in result.out


def test_nothing_is_copied_over_something(filled: CommandRunner, postgres_url: str) -> None:
    assert filled.run("db", "copy", "--to", postgres_url).code == 0
    result = filled.run("db", "copy", "--to", postgres_url)
    assert result.code == 1
    assert "is not empty" in result.err
    assert "DROP SCHEMA podium CASCADE" in result.err
    assert "roles of deploy/roles.sql, run that file again" in result.err
    assert "podium:" in result.err
    assert postgres_url.split("@")[0].rpartition(":")[2] not in result.err


def test_nothing_is_copied_while_somebody_works(filled: CommandRunner) -> None:
    now = datetime.now(UTC)
    heartbeat = WorkerHeartbeat(id="w", host="here", pid=9, started_at=now, beat_at=now)

    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: tx.save_worker(heartbeat))

    filled.within(work)
    result = filled.run("db", "copy", "--to", str(filled.project / "to.db"))
    assert result.code == 1
    assert "is in use by here (pid 9)" in result.err


def test_a_copy_needs_another_side(filled: CommandRunner) -> None:
    result = filled.run("db", "copy")
    assert result.code == 2
    assert "pass --from or --to" in result.err
    assert filled.run("db", "copy", "--to", str(database(filled))).code == 1


def add_ended(cli: CommandRunner, days: int) -> None:
    ended = datetime.now(UTC) - timedelta(days=days)
    run = Run(
        id=cli.ids.new("run"),
        flow="f",
        status=RunStatus.SUCCEEDED,
        created_at=ended,
        finished_at=ended,
    )

    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: tx.save_run(run))

    cli.within(work)


def test_runs_that_ended_long_ago_are_forgotten(filled: CommandRunner) -> None:
    for days in (1, 40, 50):
        add_ended(filled, days)
    would = filled.run("db", "prune", "--older-than", "30d", "--dry-run")
    assert would.out.startswith("2 runs would be deleted that ended before ")
    assert len(filled.run("runs", "--json").json["runs"]) == 4
    done = filled.run("db", "prune", "--older-than", "30d", "--json")
    assert (done.code, done.json["runs"], done.json["dry_run"]) == (0, 2, False)
    assert len(filled.run("runs", "--json").json["runs"]) == 2
    assert filled.run("db", "prune", "--older-than", "30d").out == "no runs ended that long ago\n"
    assert filled.run("db", "check").code == 0


def test_nothing_is_made_where_nothing_can_be_pruned(cli: CommandRunner) -> None:
    assert cli.run("db", "prune", "--older-than", "1d").code == 0
    assert not database(cli).exists()


@pytest.mark.parametrize("words", ["soon", "999999w", "-1d"])
def test_a_span_that_is_none_is_refused(filled: CommandRunner, words: str) -> None:
    result = filled.run("db", "prune", f"--older-than={words}")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1


Wrong = Callable[[PostgresServer], str]

WRONG: dict[str, tuple[Wrong, str]] = {
    "no server": (
        lambda server: f"postgresql://podium:SECRET@127.0.0.1:{unused_port()}/x",
        "Start",
    ),
    "wrong password": (
        lambda server: f"postgresql://podium:SECRET@127.0.0.1:{server.port}/postgres",
        "the password is wrong",
    ),
    "unknown database": (lambda server: server.url("nowhere"), "createdb"),
    "wrong scheme": (lambda server: "mysql://podium:SECRET@127.0.0.1/x", "postgresql://USER@HOST"),
    "no URL": (lambda server: "postgresql://podium:SECRET@[::1/x", "postgresql://USER"),
    "no permission": (
        lambda server: server.url("postgres"),
        "`podium db migrate` podium_owner",
    ),
}


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", WRONG)
def test_a_database_that_cannot_be_used_is_one_line_without_a_password(
    filled: CommandRunner, postgres_server: PostgresServer, kind: str
) -> None:
    url, words = WRONG[kind]
    name = url(postgres_server)
    result = filled.run("db", "copy", "--to", name)
    assert result.code in (1, 2)
    assert words in result.err
    assert len(result.err.splitlines()) == 1
    assert "SECRET" not in result.err
    assert "Traceback" not in result.err
    assert postgres_server.url("x").split("@")[0].rpartition(":")[2] not in result.err


def test_a_file_that_cannot_be_used_is_one_line(filled: CommandRunner) -> None:
    other = filled.project / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    result = filled.run("db", "copy", "--to", str(other))
    assert "this database belongs to another program" in result.err
    (filled.project / "text.db").write_text("this is no database, but long enough to look at " * 40)
    result = filled.run("db", "check", "--database", str(filled.project / "text.db"))
    assert "the file is damaged" in result.err
    missing = filled.run("db", "check", "--database", str(filled.project / "missing.db"))
    assert missing.code == 1
    assert not os.path.exists(filled.project / "missing.db")
