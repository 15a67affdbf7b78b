"""The database file: made, upgraded, refused. Whatever happens, nothing in it is lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest

from podium.core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
)
from podium.core.work import RunStatus
from podium.ports import EventQuery
from podium.store import sqlite
from podium.store.rows import microseconds
from podium.store.sqlite import APPLICATION_ID, SCHEMA_VERSION, connect, explained, prepare
from podium.store.view import SqlView
from tests.unit.contract.nouns import NOON, a_run

MAKING_SECONDS = 0.024
"""About how long making a file takes."""


def database(tmp_path: Path) -> Path:
    return tmp_path / "state" / "podium.db"


def test_a_new_file_is_private_durable_and_marked_as_ours(tmp_path: Path) -> None:
    path = database(tmp_path)
    prepare(path)
    connection = connect(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.close()


def test_preparing_twice_changes_nothing(tmp_path: Path) -> None:
    path = database(tmp_path)
    prepare(path)
    before = path.read_bytes()
    prepare(path)
    assert path.read_bytes() == before


def test_an_older_file_is_lifted_version_by_version_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database(tmp_path)
    prepare(path)
    connection = connect(path)
    connection.execute("INSERT INTO schedules (name, body) VALUES ('kept', '{}')")
    connection.close()
    # The next two schema versions do not exist yet; only their number is pretended.
    monkeypatch.setattr(sqlite, "SCHEMA_VERSION", SCHEMA_VERSION + 2)

    def first(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE schedules ADD COLUMN colour TEXT DEFAULT 'red'")

    def second(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE schedules SET colour = colour || ' and blue'")

    prepare(path, {SCHEMA_VERSION: first, SCHEMA_VERSION + 1: second})
    connection = connect(path)
    rows = connection.execute("SELECT name, colour FROM schedules").fetchall()
    version = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    assert rows == [("kept", "red and blue")]
    assert version == (SCHEMA_VERSION + 2,)


def test_a_file_of_version_1_learns_when_its_runs_ended(tmp_path: Path) -> None:
    path = database(tmp_path)
    path.parent.mkdir()
    ended = a_run(status=RunStatus.SUCCEEDED, finished_at=NOON)
    running = a_run(status=RunStatus.RUNNING)
    bodies = {run.id: run.model_dump_json() for run in (ended, running)} | {"run_broken": "{"}
    connection = sqlite3.connect(path)
    connection.executescript(_VERSION_1)
    connection.executemany(
        "INSERT INTO runs VALUES (?, '', 'f', 'succeeded', NULL, 0, NULL, NULL, NULL, NULL, NULL, "
        "NULL, 0, 0, ?)",
        bodies.items(),
    )
    connection.commit()
    connection.close()
    prepare(path)
    connection = connect(path)
    rows = dict(connection.execute("SELECT id, finished_at FROM runs").fetchall())
    kept = dict(connection.execute("SELECT id, body FROM runs").fetchall())
    found = SqlView(connection, NOON).ended_before(NOON + timedelta(seconds=1), 10)
    connection.close()
    assert rows == {ended.id: microseconds(NOON), running.id: None, "run_broken": None}
    assert kept == bodies
    assert found == [ended.id]


def test_a_lifted_file_has_the_columns_and_indexes_of_a_new_one(tmp_path: Path) -> None:
    lifted, new = tmp_path / "lifted.db", tmp_path / "new.db"
    connection = sqlite3.connect(lifted)
    connection.executescript(_VERSION_1)
    connection.close()

    def shape(path: Path) -> dict[str, set[str]]:
        prepare(path)
        connection = connect(path)
        columns = {row[1] for row in connection.execute("PRAGMA table_info(runs)")}
        indexes = {row[1] for row in connection.execute("PRAGMA index_list(runs)")}
        end = {row[2] for row in connection.execute("PRAGMA index_info(runs_by_end)")}
        connection.close()
        return {"columns": columns, "indexes": indexes, "end": end}

    assert shape(lifted) == shape(new)


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database(tmp_path)
    prepare(path)
    monkeypatch.setattr(sqlite, "SCHEMA_VERSION", SCHEMA_VERSION + 1)

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE schedules ADD COLUMN half TEXT")
        raise RuntimeError("pulled the plug")

    with pytest.raises(RuntimeError, match="plug"):
        prepare(path, {SCHEMA_VERSION: broken})
    connection = connect(path)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(schedules)")]
    version = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    assert "half" not in columns
    assert version == (SCHEMA_VERSION,)


def test_a_file_of_a_newer_podium_is_left_alone_and_the_message_says_upgrade(
    tmp_path: Path,
) -> None:
    path = database(tmp_path)
    prepare(path)
    connection = connect(path)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 7}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreNewer, match="upgrade Podium"):
        prepare(path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = database(tmp_path)
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreForeign, match="another program"):
        prepare(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "junk", [b"not a database at all, but long enough to look" * 40, b"\0" * 99]
)
def test_a_damaged_file_is_left_alone_and_the_message_says_how_to_recover(
    tmp_path: Path, junk: bytes
) -> None:
    path = database(tmp_path)
    path.parent.mkdir()
    path.write_bytes(junk)
    with pytest.raises(StoreCorrupt, match="recover"):
        prepare(path)
    assert path.read_bytes() == junk


def test_damage_in_the_middle_is_found_by_the_check(tmp_path: Path) -> None:
    path = database(tmp_path)
    prepare(path)
    connection = connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    whole = bytearray(path.read_bytes())
    whole[4096:8192] = os.urandom(4096)
    path.write_bytes(whole)
    try:
        found = sqlite.quick_check(path)
    except StoreCorrupt as error:
        found = str(error)
    assert found != "ok"


def test_a_lock_that_is_never_released_gives_an_error_that_says_resume_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database(tmp_path)
    prepare(path)
    # Waiting the real twenty seconds would prove no more.
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    holder, second = connect(path), connect(path)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match="nothing was lost"), explained(path):
        second.execute("BEGIN IMMEDIATE")
    holder.close()
    second.close()


def test_a_full_disk_refuses_the_write_and_keeps_what_was_there(tmp_path: Path) -> None:
    path = database(tmp_path)
    prepare(path)
    connection = connect(path)
    connection.execute("INSERT INTO schedules (name, body) VALUES ('kept', '{}')")
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreFull, match="free space in"), explained(path):
        _fill(connection)
    connection.close()
    connection = connect(path)
    assert connection.execute("SELECT name FROM schedules WHERE name = 'kept'").fetchone()
    connection.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system that fills up")
def test_a_disk_that_is_really_full_refuses_the_write_and_keeps_what_was_there(
    tmp_path: Path,
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        path = small / "podium.db"
        prepare(path)
        connection = connect(path)
        connection.execute("INSERT INTO schedules (name, body) VALUES ('kept', '{}')")
        with pytest.raises(StoreFull), explained(path):
            _fill(connection)
        assert connection.execute("SELECT 1 FROM schedules WHERE name = 'kept'").fetchone()
        connection.close()
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_folder_that_may_not_be_written_gives_an_error_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o555)
    os.chmod(tmp_path, 0o755)
    message = _in_a_process_without_privileges(lambda: prepare(folder / "podium.db"))
    assert StoreReadOnly.__name__ in message
    assert "write permission" in message
    assert list(folder.iterdir()) == []


@pytest.mark.soak
@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.soak)])
def test_a_file_killed_at_any_instant_of_its_making_opens_afterwards(
    tmp_path: Path, kills: int
) -> None:
    for number in range(kills):
        path = tmp_path / str(number) / "podium.db"
        maker = subprocess.Popen(
            [sys.executable, "-c", _MAKE, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert maker.stdout is not None
        assert maker.stdout.readline() == "ready\n"
        time.sleep(MAKING_SECONDS * number / kills)
        maker.kill()
        maker.wait()
        maker.stdout.close()
        prepare(path)
        connection = connect(path)
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
        connection.close()


@pytest.mark.parametrize("count", [4, pytest.param(10, marks=pytest.mark.soak)])
def test_processes_that_make_one_file_at_once_end_with_one_file(tmp_path: Path, count: int) -> None:
    path = database(tmp_path)
    makers = [
        subprocess.Popen([sys.executable, "-c", _MAKE, str(path)], stdout=subprocess.DEVNULL)
        for _ in range(count)
    ]
    assert [maker.wait() for maker in makers] == [0] * count
    assert sqlite.quick_check(path) == "ok"


@pytest.mark.parametrize("statement", [1, 2, 3])
def test_file_that_another_process_makes_while_it_is_looked_at_is_ours(
    tmp_path: Path, statement: int
) -> None:
    path = database(tmp_path)
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    seen: list[str] = []

    def make(sql: str) -> None:
        seen.append(sql)
        if len(seen) == statement:
            prepare(path)

    connection.set_trace_callback(make)
    assert sqlite._version(connection, path) in (0, SCHEMA_VERSION)
    connection.close()
    assert len(seen) == 3


_VERSION_1 = f"""
CREATE TABLE runs (
    id TEXT NOT NULL, tail TEXT NOT NULL, flow TEXT NOT NULL, status TEXT NOT NULL, queue TEXT,
    priority INTEGER NOT NULL, dedup_key TEXT, parent_id TEXT, not_before BIGINT,
    claimed_at BIGINT, wake_at BIGINT, owner TEXT, fence INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX runs_by_dedup ON runs (coalesce(queue, ''), dedup_key)
    WHERE dedup_key IS NOT NULL AND status NOT IN ('succeeded', 'failed', 'cancelled');
CREATE INDEX runs_by_claim ON runs (queue, claimed_at) WHERE queue IS NOT NULL;
CREATE INDEX runs_by_flow ON runs (flow, id);
CREATE INDEX runs_by_parent ON runs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_by_queue ON runs (queue, status, priority) WHERE queue IS NOT NULL;
CREATE INDEX runs_by_status ON runs (status, id);
CREATE INDEX runs_by_tail ON runs (tail);
PRAGMA user_version=1;
PRAGMA application_id={APPLICATION_ID};
"""
"""The table of runs as the first version of the schema made it."""

_MAKE = """
import sys
from pathlib import Path
from podium.store.sqlite import prepare
print("ready", flush=True)
prepare(Path(sys.argv[1]))
"""


def _fill(connection: sqlite3.Connection) -> None:
    for number in range(1000):
        connection.execute(
            "INSERT INTO schedules (name, body) VALUES (?, ?)", (f"n{number}", "x" * 9000)
        )


def _in_a_process_without_privileges(work: Callable[[], None]) -> str:
    """Run `work` as a user who may not write here, and give the error it raised as text."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        try:
            work()
            sender.send("no error")
        except Exception as error:
            sender.send(f"{type(error).__name__}: {error}")

    process = context.Process(target=child)
    process.start()
    process.join()
    return str(receiver.recv())


def test_events_of_a_type_are_found_by_the_index(tmp_path: Path) -> None:
    path = database(tmp_path)
    prepare(path)
    connection = connect(path)
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    SqlView(connection, NOON).events(EventQuery(types=("tool_failed", "run_failed")))
    connection.set_trace_callback(None)
    plan = connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}").fetchall()
    connection.close()
    assert any("events_by_type" in row[3] for row in plan), plan
