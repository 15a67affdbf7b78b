"""A database that is gone or empty although receipts were sealed is never taken for a new project."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_receipts import RUN, perform
from tests.integration.workspaces.workspace_harness import needs_bwrap
from tests.soaking import in_soak

LATER = "run_00000000000070008000feedface0002"


def _removed(database: Path) -> None:
    database.unlink()


def _truncated(database: Path) -> None:
    database.write_bytes(b"")


def _emptied(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        for table in ("receipts", "runs", "events", "steps", "calls"):
            connection.execute(f"DELETE FROM {table}")
    connection.close()


@pytest.fixture
def database(cli: CommandRunner) -> Path:
    perform(cli, "a")
    cli.add_run(run_id=RUN)
    return cli.project / ".podium" / "podium.db"


@pytest.mark.sample(1)
@pytest.mark.parametrize("lose", [_removed, _emptied, in_soak(_truncated)])
def test_lost_record_is_reported_and_stops_readers_and_writers(
    cli: CommandRunner, database: Path, lose: Callable[[Path], None]
) -> None:
    shutil.copy(database, cli.home / "backup.db")
    lose(database)
    before = database.read_bytes() if database.exists() else None
    for command in (["runs"], ["show", RUN], ["approvals"], ["receipts", "list"], ["cancel", RUN]):
        result = cli.run(*command)
        assert (result.code, "the record is lost" in result.err) == (1, True), command
        assert "`podium db begin-anew`" in result.err
    assert before == (database.read_bytes() if database.exists() else None)
    doctor = cli.run("doctor", "--json")
    found = {check["name"]: check for check in doctor.json["checks"]}
    assert (doctor.code, found["database"]["state"]) == (1, "fail")
    assert "1 run" in found["database"]["says"]
    assert cli.run("receipts", "verify").code == 1

    shutil.copy(cli.home / "backup.db", database)
    assert RUN[-8:] not in cli.run("runs").err
    assert cli.run("receipts", "verify").code == 0


def test_new_record_is_begun_when_requested_and_the_heads_are_kept(
    cli: CommandRunner, database: Path
) -> None:
    assert "not lost" in cli.run("db", "begin-anew").err
    database.unlink()
    result = cli.run("db", "begin-anew", "--json")
    assert result.code == 0
    assert [head.name for head in Path(result.json["heads"]).iterdir()] == [RUN]
    assert cli.run("runs").code == 0
    assert cli.run("receipts", "verify").code == 0
    perform(cli, "b")
    assert cli.run("receipts", "verify").code == 0


@pytest.mark.soak
def test_a_record_rolled_back_to_an_older_backup_is_as_loud_as_a_lost_one(
    cli: CommandRunner, database: Path
) -> None:
    older, newer = cli.home / "older.db", cli.home / "newer.db"
    shutil.copy(database, older)
    perform(cli, "b", run_id=LATER)
    shutil.copy(database, newer)
    shutil.copy(older, database)
    for command in (["runs"], ["show", RUN], ["cancel", RUN]):
        result = cli.run(*command)
        assert (result.code, "the record was rolled back" in result.err) == (1, True), command
        assert "restore the newer file" in result.err
        assert "`podium db begin-anew`" in result.err
    doctor = cli.run("doctor", "--json")
    found = {check["name"]: check for check in doctor.json["checks"]}
    assert (doctor.code, found["database"]["state"]) == (1, "fail")
    assert cli.run("receipts", "verify").code == 1
    assert database.read_bytes() == older.read_bytes()

    shutil.copy(newer, database)
    assert cli.run("runs").code == 0
    assert cli.run("receipts", "verify").code == 0

    shutil.copy(older, database)
    result = cli.run("db", "begin-anew", "--json")
    assert (result.code, result.json["database"]) == (0, None)
    assert sorted(head.name for head in Path(result.json["heads"]).iterdir()) == [RUN, LATER]
    assert "feedface" in cli.run("runs").out, "what the older record holds is kept"
    perform(cli, "c", run_id=LATER)
    assert cli.run("receipts", "verify").code == 0
    assert cli.run("runs").code == 0


def test_a_chain_that_an_older_backup_cuts_off_is_a_rollback_too(cli: CommandRunner) -> None:
    perform(cli, "a")
    database = cli.project / ".podium" / "podium.db"
    older = shutil.copy(database, cli.home / "older.db")
    perform(cli, "b")
    shutil.copy(older, database)
    assert "the record was rolled back" in cli.run("runs").err


def test_folder_emptied_of_its_record_is_detected_by_the_heads_outside(cli: CommandRunner) -> None:
    perform(cli, "a")
    (vault,) = (cli.home / "state" / "vaults").iterdir()
    shutil.rmtree(cli.project / ".podium")
    cli.add_run(run_id=RUN)
    doctor = cli.run("doctor", "--json")
    found = {check["name"]: check for check in doctor.json["checks"]}
    assert found["heads"]["state"] == "warn"
    assert str(vault) in found["heads"]["says"]


@pytest.mark.parametrize("lose", [_removed, *map(in_soak, (_truncated, _emptied))])
def test_a_key_without_its_database_is_a_loss_too(
    cli: CommandRunner, database: Path, lose: Callable[[Path], None]
) -> None:
    (heads,) = (cli.home / "state" / "vaults").glob("*/heads")
    shutil.rmtree(heads)
    assert cli.run("runs").code == 0
    lose(database)
    before = database.read_bytes() if database.exists() else None
    for command in (["receipts", "verify"], ["runs"], ["receipts", "list"]):
        result = cli.run(*command)
        assert (result.code, "the record is lost" in result.err) == (1, True), command
    assert before == (database.read_bytes() if database.exists() else None)
    assert cli.run("db", "begin-anew").code == 0
    for command in (["runs"], ["receipts", "verify"]):
        assert cli.run(*command).code == 0, command
    perform(cli, "b")
    shutil.rmtree(heads)
    lose(database)
    assert cli.run("runs").code == 1, "what was begun anew can be lost again"


def test_database_of_another_project_is_moved_away_before_a_new_record_begins(
    cli: CommandRunner, database: Path
) -> None:
    (other,) = sqlite3.connect(database).execute("SELECT count(*) FROM runs").fetchone()
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE receipts SET run_id = 'another'")
    connection.close()
    result = cli.run("db", "begin-anew", "--json")
    stderr = Path(result.json["database"])
    assert (result.code, stderr.parent, stderr.name[:12]) == (0, database.parent, "podium.db-20")
    assert sqlite3.connect(stderr).execute("SELECT count(*) FROM runs").fetchone() == (other,)
    assert cli.run("runs", "--json").json["runs"] == []


def test_a_project_without_receipts_has_lost_nothing(cli: CommandRunner) -> None:
    assert cli.run("runs").code == 0
    cli.add_run(run_id=RUN)
    assert cli.run("receipts", "verify").code == 0
    assert cli.run("runs").code == 0


@pytest.mark.soak
@needs_bwrap()
def test_a_folder_that_may_not_be_written_can_be_read(cli: CommandRunner, database: Path) -> None:
    mounts = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(cli.project), str(cli.project)]
    for arguments, shown in (
        (["runs"], "feedface"),
        (["receipts", "verify"], "1 receipt of 1 run"),
    ):
        done = subprocess.run(
            [*mounts, *cli.command(*arguments)],
            cwd=cli.project,
            env=cli.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert shown in done.stdout
