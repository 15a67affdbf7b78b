"""A project that moves from one database to another: all of it, or nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow, StoreUnusable
from podium.core.work import Run, Schedule, WorkerHeartbeat
from podium.ports import RunQuery, Transaction
from podium.store import SqlStore
from podium.store.database_copy import RowDigest, TableCopy, copy_database, database_named
from podium.store.database_snapshot import Row, WholeDatabase, selection
from podium.store.receipts import verify
from podium.store.schema import TABLES
from podium.store.view import SqlView
from podium.testing import FixedClock, SteadyIds
from tests.unit.contract.nouns import (
    NOON,
    a_call,
    a_note,
    a_queued_run,
    a_receipt,
    a_run,
    a_signal,
    a_step,
    an_approval,
)


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> WholeDatabase:
    if request.param == "sqlite":
        return database_named(str(tmp_path / "target.db"))
    return database_named(request.getfixturevalue("postgres_url"))


async def make_project(folder: Path, *, runs: int = 3, beat_at: datetime = NOON) -> WholeDatabase:
    """A SQLite project with something in every table."""
    store = await SqlStore.open(folder, clock=FixedClock(NOON), ids=SteadyIds())
    for number in range(runs):
        await store.write(lambda tx, number=number: fill(tx, number))  # type: ignore[misc]
    heartbeat = WorkerHeartbeat(id="w1", host="there", pid=7, started_at=beat_at, beat_at=beat_at)
    await store.write(lambda tx: tx.save_worker(heartbeat))
    await store.close()
    return database_named(str(folder))


def fill(tx: Transaction, number: int) -> None:
    run = a_run(task=f"naïve ☃ \\N \\ \t task {number}\n", priority=-number)
    tx.add_run(run)
    for text in ("one", "two\u0000three", 'quoted "\'\\"', "emoji 🎭"):
        tx.append(run.id, a_note(text))
    tx.save_step(a_step(run.id, f"plan#{number}", ordinal=1, output={"n": 1.5}))
    tx.add_signal(a_signal(run.id))
    tx.save_call(a_call(run.id, f"{run.id}:plan:0"))
    tx.save_approval(an_approval(run.id))
    tx.add_receipt(a_receipt(run.id))
    tx.add_receipt(a_receipt(run.id))
    tx.add_run(a_queued_run(queue="work", dedup_key=f"key {number}"))
    tx.count("tokens", NOON + timedelta(seconds=number), 0.1 * number)
    tx.save_schedule(
        Schedule(name=f"s{number}", cron="* * * * *", flow="greet", queue="work", next_at=NOON)
    )


def everything(database: WholeDatabase) -> dict[str, list[Row]]:
    with database.reading() as reading:
        return {
            table.name: sorted(
                (tuple(row) for batch in reading.batches(selection(table)) for row in batch),
                key=repr,
            )
            for table in TABLES
            if table.name != "workers"
        }


async def test_every_row_moves_and_comes_back_as_it_was(
    tmp_path: Path, target: WholeDatabase
) -> None:
    source = await make_project(tmp_path / "source")
    done = copy_database(source, target)
    assert everything(target) == everything(source)
    assert {table.name: table.rows for table in done.tables} == {
        "approvals": 3,
        "calls": 3,
        "counters": 3,
        "events": 12,
        "receipts": 6,
        "runs": 6,
        "schedules": 3,
        "signals": 3,
        "steps": 3,
    }
    back = database_named(str(tmp_path / "back.db"))
    again = copy_database(target, back)
    assert everything(back) == everything(source)
    assert again.tables == done.tables


async def test_a_copied_project_is_read_and_its_receipts_are_proved(
    tmp_path: Path, target: WholeDatabase
) -> None:
    source = await make_project(tmp_path / "source")
    copy_database(source, target)
    store = await SqlStore.open(tmp_path / "source", clock=FixedClock(NOON), ids=SteadyIds())
    with target.reading() as reading:
        view = SqlView(reading, NOON)
        assert len(view.runs(RunQuery(queue="work"))) == 3
        chains = {run.id: view.receipts(run.id) for run in view.runs(RunQuery())}
    assert sum(map(len, chains.values())) == 6
    assert verify(chains, store.sealer, store.anchors) == []
    await store.close()


async def test_heartbeats_stay_behind(tmp_path: Path, target: WholeDatabase) -> None:
    copy_database(await make_project(tmp_path / "source"), target)
    with target.reading() as reading:
        assert reading.execute("SELECT id FROM workers").fetchall() == []


async def test_nothing_is_copied_while_a_worker_sends_heartbeats(
    tmp_path: Path, target: WholeDatabase
) -> None:
    source = await make_project(tmp_path / "source", beat_at=datetime.now(UTC))
    with pytest.raises(NotPossibleNow, match=r"is in use by there \(pid 7\)"):
        copy_database(source, target)
    assert target.version() == 0


async def test_a_target_that_holds_anything_is_left_as_it_is(
    tmp_path: Path, target: WholeDatabase
) -> None:
    source = await make_project(tmp_path / "source")
    copy_database(source, target)
    before = everything(target)
    other = await make_project(tmp_path / "other", runs=1)
    with pytest.raises(NotPossibleNow, match=r"is not empty .* to empty it: "):
        copy_database(other, target)
    assert everything(target) == before


async def test_a_database_is_not_copied_to_itself(tmp_path: Path) -> None:
    source = await make_project(tmp_path / "source")
    with pytest.raises(NotPossibleNow, match="cannot be copied to itself"):
        copy_database(source, database_named(str(tmp_path / "source" / "podium.db")))


async def test_a_copy_that_fails_in_the_middle_leaves_the_target_empty(
    tmp_path: Path, target: WholeDatabase
) -> None:
    source = await make_project(tmp_path / "source")

    def fail(doing: str, rows: int, of: int) -> None:
        if doing == "copying receipts":
            raise RuntimeError("out of the blue")

    with pytest.raises(RuntimeError, match="out of the blue"):
        copy_database(source, target, progress=fail)
    assert not any(everything(target).values())
    copy_database(source, target)
    assert everything(target) == everything(source)


async def test_a_copy_that_is_killed_leaves_the_target_empty(
    tmp_path: Path, target: WholeDatabase, request: pytest.FixtureRequest
) -> None:
    source = await make_project(tmp_path / "source")
    named = (
        request.getfixturevalue("postgres_url")
        if target.name.startswith("postgresql")
        else target.name
    )
    program = (
        "import os, signal, sys\n"
        "from podium.store.database_copy import copy_database\n"
        "from podium.store.database_copy import database_named\n"
        "def kill(doing, rows, of):\n"
        "    if doing == 'comparing events': os.kill(os.getpid(), signal.SIGKILL)\n"
        "copy_database(database_named(sys.argv[1]), database_named(sys.argv[2]), progress=kill)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "source"), named], check=False
    )
    assert done.returncode == -9
    assert target.version() > 0
    assert not any(everything(target).values())
    copy_database(source, target)
    assert everything(target) == everything(source)


async def test_what_arrives_changed_is_not_kept(tmp_path: Path) -> None:
    source = await make_project(tmp_path / "source")
    target = database_named(str(tmp_path / "target.db"))
    target.migrate()
    with closing(sqlite3.connect(tmp_path / "target.db")) as database:
        # A database that alters what it is given, as a full or faulty one might.
        database.execute(
            "CREATE TRIGGER mangle AFTER INSERT ON steps BEGIN "
            "UPDATE steps SET body = body || ' ' WHERE key = new.key; END"
        )
        database.commit()
    with pytest.raises(StoreUnusable, match="steps differ from the source"):
        copy_database(source, target)
    assert not any(everything(target).values())


async def test_runs_that_wait_for_their_turn_are_handed_to_the_queues_of_the_target(
    tmp_path: Path, target: WholeDatabase
) -> None:
    source = await make_project(tmp_path / "source")
    handed: list[Run] = []
    copy_database(source, target, enqueue=lambda sql, run, now: handed.append(run))
    assert [run.queue for run in handed] == ["work"] * 3


async def test_a_source_of_an_older_schema_is_migrated_first(tmp_path: Path) -> None:
    source = await make_project(tmp_path / "source")
    with closing(sqlite3.connect(tmp_path / "source" / "podium.db")) as database:
        database.execute("PRAGMA user_version = 1")
    with pytest.raises(StoreUnusable, match="run `podium db migrate` on it first"):
        copy_database(source, database_named(str(tmp_path / "target.db")))


def test_a_source_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    missing = database_named(str(tmp_path / "missing.db"))
    with pytest.raises(StoreUnusable, match="it contains no Podium project"):
        copy_database(missing, database_named(str(tmp_path / "target.db")))
    assert list(tmp_path.iterdir()) == []


def test_digest_distinguishes_rows_but_not_their_order() -> None:
    def digest(*rows: Row) -> TableCopy:
        found = RowDigest()
        found.add(rows)
        return TableCopy(name="t", rows=found.rows, digest=found.hex())

    assert digest((1, "a"), (2, "b")) == digest((2, "b"), (1, "a"))
    assert digest((1, "a"), (2, "b")) != digest((1, "b"), (2, "a"))
    assert digest((1, "a"), (1, "a")).digest != digest((1, "a")).digest
    assert digest(("1",)).digest != digest((1,)).digest
    assert digest((1, None)).digest != digest((1, "")).digest
