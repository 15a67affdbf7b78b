"""Processes on one PostgreSQL reach for one thing at the same instant: exactly one gets it, every time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import psycopg
import pytest

from podium.app.approvals import approve
from podium.core.decisions import Approval, Tier
from podium.core.errors import LockHeld, NotPossibleNow
from podium.core.work import QueueSpec, Run
from podium.engine import FlowDefinition
from podium.engine.distributed import DbosEngine, enqueue
from podium.engine.distributed.database import migrate
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import FlowContext, Store, Transaction
from podium.store.postgres_presence import PostgresPresence
from podium.store.postgres_store import PostgresStore
from podium.testing import retry_until
from tests.soaking import in_soak

CLOCK, IDS = SystemClock(), SystemIds()
FRESH = get_context("spawn")
"""Not forked: another test's thread may hold a lock, which nobody in a fork would ever let go of."""
RACERS = 3

Reach = Callable[[Store, DbosEngine, str], Awaitable[bool]]
"""Try to get one thing; True when it was had."""


async def _approve(store: Store, engine: DbosEngine, approval_id: str) -> bool:
    try:
        await approve(store, CLOCK, IDS, approval_id, by=engine.worker_id)
    except NotPossibleNow:
        return False
    return True


async def _take_run(store: Store, engine: DbosEngine, run_id: str) -> bool:
    try:
        await engine.resume(run_id)
    except LockHeld:
        return False
    return True


@pytest.mark.soak
@pytest.mark.parametrize(("approvals", "runs"), [(40, 20), in_soak(1_000, 1_000)])
def test_one_thing_is_had_by_one_of_three_processes(
    postgres_url: str, tmp_path: Path, approvals: int, runs: int
) -> None:
    things = asyncio.run(_prepare_things(postgres_url, tmp_path, approvals, runs))
    barrier = FRESH.Barrier(RACERS)
    won = _in_processes(partial(_reach_for_all, postgres_url, tmp_path, things, barrier))
    winners = [sum(item) for item in zip(*won, strict=True)]
    assert winners == [1] * (approvals + runs)
    print(f"{len(winners)} races, won {' : '.join(str(sum(item)) for item in won)}")


@pytest.mark.parametrize(
    ("limit", "runs"), [(7, 60), in_soak(None, 80), in_soak(7, 1_000), in_soak(None, 1_000)]
)
def test_every_queued_run_is_claimed_once_by_one_of_three_workers(
    postgres_url: str, tmp_path: Path, limit: int | None, runs: int
) -> None:
    asyncio.run(_queue_runs(postgres_url, tmp_path, runs))
    queue = QueueSpec(name="work", concurrency=limit, worker_concurrency=4)
    hosted = _in_processes(partial(_serve_until_empty, postgres_url, tmp_path, queue))
    claims = _rows(postgres_url, "SELECT run_id FROM podium.events WHERE type = 'run_started'")
    assert len(claims) == len(set(claims)) == runs
    bodies = Counter(run_id for item in hosted for run_id in item)
    assert bodies == Counter(run_id for (run_id,) in claims)
    print(f"{runs} claims, won {' : '.join(str(len(item)) for item in hosted)}")


# --- what each process does ------------------------------------------------------------------


async def _reach_for_all(
    url: str, folder: Path, things: Sequence[tuple[Reach, str]], barrier: Barrier
) -> list[bool]:
    async def park(ctx: FlowContext, _: object) -> None:
        await ctx.wait("never")

    store, engine = await _open(url, folder)
    engine.register(FlowDefinition("park", park))
    results = []
    for reach, name in things:
        await asyncio.to_thread(barrier.wait)
        results.append(await reach(store, engine, name))
    await asyncio.to_thread(barrier.wait)
    await engine.close()
    await store.close()
    return results


async def _serve_until_empty(url: str, folder: Path, queue: QueueSpec) -> list[str]:
    """The runs whose body ran here."""
    hosted: list[str] = []

    async def touch(ctx: FlowContext, _: object) -> None:
        hosted.append(ctx.run.id)

    async def nothing_is_left() -> bool:
        return not await store.read(lambda view: view.tallies())

    store, engine = await _open(url, folder)
    engine.register(FlowDefinition("touch", touch))
    async with engine.serve([queue]):
        await retry_until(nothing_is_left, seconds=1800)
    await engine.close()
    await store.close()
    return hosted


def _in_processes(work: Callable[[], Coroutine[Any, Any, list[Any]]]) -> list[list[Any]]:
    """Return the result of each process."""
    pipes = [FRESH.Pipe(duplex=False) for _ in range(RACERS)]
    racers = [FRESH.Process(target=_racer, args=(work, sender)) for _, sender in pipes]
    for racer in racers:
        racer.start()
    for _, sender in pipes:
        sender.close()
    results = [receiver.recv() for receiver, _ in pipes]
    for racer in racers:
        racer.join()
    return results


def _racer(work: Callable[[], Coroutine[Any, Any, list[Any]]], sender: Any) -> None:
    sender.send(asyncio.run(work()))


# --- what they find --------------------------------------------------------------------------


async def _prepare_things(
    url: str, folder: Path, approvals: int, runs: int
) -> list[tuple[Reach, str]]:
    store, _ = await _open(url, folder)
    owners = [
        Run(id=IDS.new("run"), flow="park", created_at=CLOCK.now()) for _ in range(approvals + runs)
    ]
    asked = [_approval(run) for run in owners[:approvals]]

    def fill(tx: Transaction) -> None:
        for run in owners:
            tx.add_run(run)
        for approval in asked:
            tx.save_approval(approval)

    await store.write(fill)
    await store.close()
    return [
        *((_approve, approval.id) for approval in asked),
        *((_take_run, run.id) for run in owners[approvals:]),
    ]


async def _queue_runs(url: str, folder: Path, amount: int) -> None:
    store, _ = await _open(url, folder)
    runs = [
        Run(id=IDS.new("run"), flow="touch", queue="work", created_at=CLOCK.now())
        for _ in range(amount)
    ]

    def fill(tx: Transaction) -> None:
        for run in runs:
            tx.add_run(run)

    await store.write(fill)
    await store.close()


def _approval(run: Run) -> Approval:
    return Approval(
        id=IDS.new("appr"),
        run_id=run.id,
        call_key=f"{run.id}:step:0",
        digest="sha256:0",
        tool="send",
        summary="send it",
        tier=Tier.T3,
        requested_at=CLOCK.now(),
        deadline=CLOCK.now().replace(year=CLOCK.now().year + 1),
    )


async def _open(url: str, folder: Path) -> tuple[PostgresStore, DbosEngine]:
    await asyncio.to_thread(migrate, url)
    store = await PostgresStore.open(url, folder=folder, clock=CLOCK, ids=IDS, queued=enqueue)
    engine = DbosEngine(store, url=url, clock=CLOCK, ids=IDS, presence=PostgresPresence(url))
    return store, engine


def _rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode()).fetchall()
