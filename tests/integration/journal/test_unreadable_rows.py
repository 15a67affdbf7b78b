"""Rows that cannot be read: what stands beside them is seen all the same, and somebody is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import StoreUnusable
from podium.core.work import QueueSpec, Run, RunStatus, Schedule, WorkerHeartbeat
from podium.platform.system_clock import SystemIds
from podium.ports import RunQuery, Transaction
from podium.store import SqlStore
from podium.store.open_store import MAX_UNREADABLE, OpenStore
from podium.store.postgres_store import PostgresStore
from podium.store.transaction import SqlTransaction
from podium.testing import FixedClock

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECRET = "hunter2-hunter2"


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenStore]:
    made: OpenStore
    clock, ids = FixedClock(NOON), SystemIds()
    if request.param == "sqlite":
        made = await SqlStore.open(tmp_path, clock=clock, ids=ids)
    else:
        url = request.getfixturevalue("postgres_url")
        made = await PostgresStore.open(url, folder=tmp_path, clock=clock, ids=ids)
    yield made
    await made.close()


async def spoil(store: OpenStore, table: str, key: str, body: str = "nonsense") -> None:
    """Put something else into a row's body."""
    column = "name" if table == "schedules" else "id"

    def work(tx: Transaction) -> None:
        assert isinstance(tx, SqlTransaction)
        tx.ask(
            f"UPDATE {table} SET body = :body WHERE {column} = :key RETURNING 1",
            body=body,
            key=key,
        )

    await store.write(work)


def a_run(number: int, **changes: Any) -> Run:
    complete: dict[str, Any] = {"flow": "greet", "queue": "work", "created_at": NOON}
    return Run(id=f"run_{number:032}", **complete | changes)


def a_heartbeat(worker_id: str) -> WorkerHeartbeat:
    return WorkerHeartbeat(id=worker_id, host="h", pid=1, started_at=NOON, beat_at=NOON)


def a_schedule(name: str) -> Schedule:
    return Schedule(name=name, flow="greet", queue="work", every_seconds=60.0, next_at=NOON)


async def add_runs(store: OpenStore, *runs: Run) -> None:
    def work(tx: Transaction) -> None:
        for run in runs:
            tx.add_run(run)

    await store.write(work)


BAD_HEARTBEATS = [
    "nonsense",
    "[]",
    "null",
    '{"id": 7}',
    f'{{"id": "wrk_bad", "host": "h", "pid": "{SECRET}"}}',
    "[" * 100_000,
]


@pytest.mark.parametrize("body", BAD_HEARTBEATS, ids=[body[:12] for body in BAD_HEARTBEATS])
async def test_unreadable_heartbeat_hides_no_other_and_is_reported_once(
    store: OpenStore, body: str
) -> None:
    for worker_id in ("wrk_a", "wrk_bad", "wrk_c"):
        heartbeat = a_heartbeat(worker_id)
        await store.write(lambda tx, heartbeat=heartbeat: tx.save_worker(heartbeat))  # type: ignore[misc]
    await spoil(store, "workers", "wrk_bad", body)
    for _ in range(3):
        seen = await store.read(lambda view: view.workers())
        assert [heartbeat.id for heartbeat in seen] == ["wrk_a", "wrk_c"]
    await store.write(lambda tx: tx.workers())
    (fault,) = store.problems
    assert fault.startswith("worker 'wrk_bad' in the database cannot be read: ")
    assert SECRET not in fault


async def test_heartbeat_of_a_newer_podium_is_read_without_what_is_new(store: OpenStore) -> None:
    heartbeat = a_heartbeat("wrk_a")
    await store.write(lambda tx: tx.save_worker(heartbeat))
    await spoil(store, "workers", "wrk_a", heartbeat.model_dump_json()[:-1] + ', "mood": "fine"}')
    assert await store.read(lambda view: view.workers()) == [heartbeat]
    assert store.problems == ()


async def test_a_schedule_that_cannot_be_read_stops_no_other(store: OpenStore) -> None:
    await store.write(lambda tx: tx.save_schedule(a_schedule("day")))
    await store.write(lambda tx: tx.save_schedule(a_schedule("night")))
    await spoil(store, "schedules", "day")
    assert [one.name for one in await store.read(lambda view: view.schedules())] == ["night"]
    assert await store.read(lambda view: view.next_due_at()) == NOON
    assert store.problems == ("schedule 'day' in the database cannot be read: not JSON",)


async def test_pages_of_runs_are_full_in_spite_of_rows_that_cannot_be_read(
    store: OpenStore,
) -> None:
    runs = [a_run(number) for number in range(10)]
    await add_runs(store, *runs)
    for number in (9, 8, 6, 0):
        await spoil(store, "runs", runs[number].id)
    found: list[Run] = []
    before = None
    while page := await list_runs(store, before):
        found += page
        before = page[-1].id
        assert len(page) == 3
    assert found == [runs[number] for number in (7, 5, 4, 3, 2, 1)]
    assert len(store.problems) == 4


async def list_runs(store: OpenStore, before: str | None) -> list[Run]:
    return await store.read(lambda view: view.runs(RunQuery(before_id=before, limit=3)))


async def test_a_run_that_cannot_be_read_says_so_when_it_is_asked_for(store: OpenStore) -> None:
    run = a_run(1)
    await add_runs(store, run)
    await spoil(store, "runs", run.id, f'{{"id": "{SECRET}"}}')
    with pytest.raises(StoreUnusable, match=f"run '{run.id}': its row .* cannot be read") as caught:
        await store.read(lambda view: view.run(run.id))
    assert SECRET not in str(caught.value)


async def test_a_queued_run_that_cannot_be_read_does_not_block_its_queue(store: OpenStore) -> None:
    runs = [a_run(number) for number in range(3)]
    await add_runs(store, *runs)
    await spoil(store, "runs", runs[0].id)
    work = QueueSpec(name="work")
    taken = [await claim(store, work) for _ in range(3)]
    assert [run and run.id for run in taken] == [runs[1].id, runs[2].id, None]


async def claim(store: OpenStore, queue: QueueSpec) -> Run | None:
    return await store.write(lambda tx: tx.claim("w", queue, ["greet"], NOON))


async def test_tallies_and_waits_go_on_beside_a_run_that_cannot_be_read(store: OpenStore) -> None:
    waits = [a_run(n, status=RunStatus.WAITING, wake_at=NOON) for n in (1, 2)]
    await add_runs(store, *waits, a_run(3), a_run(4, queue="other"))
    for run_id in (waits[0].id, a_run(3).id):
        await spoil(store, "runs", run_id)
    later = NOON + timedelta(seconds=1)
    assert await store.read(lambda view: view.due_waits(later)) == [waits[1]]
    other, work = await store.read(lambda view: view.tallies())
    assert (work.queued, work.waiting, work.oldest_queued_at) == (1, 2, None)
    assert (other.queued, other.oldest_queued_at) == (1, NOON)


async def test_database_full_of_such_rows_is_reported_briefly(store: OpenStore) -> None:
    names = [f"wrk_{number:03}" for number in range(MAX_UNREADABLE + 10)]

    def work(tx: Transaction) -> None:
        for name in names:
            tx.save_worker(a_heartbeat(name))

    await store.write(work)
    for name in names:
        await spoil(store, "workers", name)
    assert await store.read(lambda view: view.workers()) == []
    assert len(store.problems) == MAX_UNREADABLE
