"""A database that is gone or empty although receipts were sealed is never taken for a new project."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cli.desk import Desk
from tests.integration.cli.test_receipts import RUN, perform
from tests.integration.workspaces.rig import needs_bwrap
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
def database(desk: Desk) -> Path:
    perform(desk, "a")
    desk.add_run(run_id=RUN)
    return desk.project / ".podium" / "podium.db"


@pytest.mark.sample(1)
@pytest.mark.parametrize("lose", [_removed, _emptied, in_soak(_truncated)])
def test_a_lost_record_is_told_and_stops_whoever_reads_or_writes(
    desk: Desk, database: Path, lose: Callable[[Path], None]
) -> None:
    shutil.copy(database, desk.home / "backup.db")
    lose(database)
    before = database.read_bytes() if database.exists() else None
    for command in (["runs"], ["show", RUN], ["approvals"], ["receipts", "list"], ["cancel", RUN]):
        said = desk.run(*command)
        assert (said.code, "the record is lost" in said.err) == (1, True), command
        assert "`podium db begin-anew`" in said.err
    assert before == (database.read_bytes() if database.exists() else None)
    doctor = desk.run("doctor", "--json")
    found = {check["name"]: check for check in doctor.json["checks"]}
    assert (doctor.code, found["database"]["state"]) == (1, "fail")
    assert "1 run" in found["database"]["says"]
    assert desk.run("receipts", "verify").code == 1

    shutil.copy(desk.home / "backup.db", database)
    assert RUN[-8:] not in desk.run("runs").err
    assert desk.run("receipts", "verify").code == 0


def test_a_new_record_is_begun_when_told_so_and_the_heads_are_kept(
    desk: Desk, database: Path
) -> None:
    assert "not lost" in desk.run("db", "begin-anew").err
    database.unlink()
    said = desk.run("db", "begin-anew", "--json")
    assert said.code == 0
    assert [head.name for head in Path(said.json["heads"]).iterdir()] == [RUN]
    assert desk.run("runs").code == 0
    assert desk.run("receipts", "verify").code == 0
    perform(desk, "b")
    assert desk.run("receipts", "verify").code == 0


@pytest.mark.soak
def test_a_record_rolled_back_to_an_older_backup_is_as_loud_as_a_lost_one(
    desk: Desk, database: Path
) -> None:
    older, newer = desk.home / "older.db", desk.home / "newer.db"
    shutil.copy(database, older)
    perform(desk, "b", run_id=LATER)
    shutil.copy(database, newer)
    shutil.copy(older, database)
    for command in (["runs"], ["show", RUN], ["cancel", RUN]):
        said = desk.run(*command)
        assert (said.code, "the record was rolled back" in said.err) == (1, True), command
        assert "restore the newer file" in said.err
        assert "`podium db begin-anew`" in said.err
    doctor = desk.run("doctor", "--json")
    found = {check["name"]: check for check in doctor.json["checks"]}
    assert (doctor.code, found["database"]["state"]) == (1, "fail")
    assert desk.run("receipts", "verify").code == 1
    assert database.read_bytes() == older.read_bytes()

    shutil.copy(newer, database)
    assert desk.run("runs").code == 0
    assert desk.run("receipts", "verify").code == 0

    shutil.copy(older, database)
    said = desk.run("db", "begin-anew", "--json")
    assert (said.code, said.json["database"]) == (0, None)
    assert sorted(head.name for head in Path(said.json["heads"]).iterdir()) == [RUN, LATER]
    assert "feedface" in desk.run("runs").out, "what the older record holds is kept"
    perform(desk, "c", run_id=LATER)
    assert desk.run("receipts", "verify").code == 0
    assert desk.run("runs").code == 0


def test_a_chain_that_an_older_backup_cuts_off_is_a_rollback_too(desk: Desk) -> None:
    perform(desk, "a")
    database = desk.project / ".podium" / "podium.db"
    older = shutil.copy(database, desk.home / "older.db")
    perform(desk, "b")
    shutil.copy(older, database)
    assert "the record was rolled back" in desk.run("runs").err


def test_a_folder_that_was_emptied_of_its_record_is_told_by_the_heads_outside(desk: Desk) -> None:
    perform(desk, "a")
    (vault,) = (desk.home / "state" / "vaults").iterdir()
    shutil.rmtree(desk.project / ".podium")
    desk.add_run(run_id=RUN)
    doctor = desk.run("doctor", "--json")
    found = {check["name"]: check for check in doctor.json["checks"]}
    assert found["heads"]["state"] == "warn"
    assert str(vault) in found["heads"]["says"]


@pytest.mark.parametrize("lose", [_removed, *map(in_soak, (_truncated, _emptied))])
def test_a_key_without_its_database_is_a_loss_too(
    desk: Desk, database: Path, lose: Callable[[Path], None]
) -> None:
    (heads,) = (desk.home / "state" / "vaults").glob("*/heads")
    shutil.rmtree(heads)
    assert desk.run("runs").code == 0
    lose(database)
    before = database.read_bytes() if database.exists() else None
    for command in (["receipts", "verify"], ["runs"], ["receipts", "list"]):
        said = desk.run(*command)
        assert (said.code, "the record is lost" in said.err) == (1, True), command
    assert before == (database.read_bytes() if database.exists() else None)
    assert desk.run("db", "begin-anew").code == 0
    for command in (["runs"], ["receipts", "verify"]):
        assert desk.run(*command).code == 0, command
    perform(desk, "b")
    shutil.rmtree(heads)
    lose(database)
    assert desk.run("runs").code == 1, "what was begun anew can be lost again"


def test_a_database_of_another_project_is_put_aside_before_a_new_record_begins(
    desk: Desk, database: Path
) -> None:
    (other,) = sqlite3.connect(database).execute("SELECT count(*) FROM runs").fetchone()
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE receipts SET run_id = 'another'")
    connection.close()
    said = desk.run("db", "begin-anew", "--json")
    aside = Path(said.json["database"])
    assert (said.code, aside.parent, aside.name[:12]) == (0, database.parent, "podium.db-20")
    assert sqlite3.connect(aside).execute("SELECT count(*) FROM runs").fetchone() == (other,)
    assert desk.run("runs", "--json").json["runs"] == []


def test_a_project_without_receipts_has_lost_nothing(desk: Desk) -> None:
    assert desk.run("runs").code == 0
    desk.add_run(run_id=RUN)
    assert desk.run("receipts", "verify").code == 0
    assert desk.run("runs").code == 0


@pytest.mark.soak
@needs_bwrap()
def test_a_folder_that_may_not_be_written_can_be_read(desk: Desk, database: Path) -> None:
    mounts = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(desk.project), str(desk.project)]
    for arguments, shown in (
        (["runs"], "feedface"),
        (["receipts", "verify"], "1 receipt of 1 run"),
    ):
        done = subprocess.run(
            [*mounts, *desk.command(*arguments)],
            cwd=desk.project,
            env=desk.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert shown in done.stdout
