"""Measures the simulation's only numbers on this machine, with a real PostgreSQL that waits for its disk."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import engine_costs, store_costs
from benchmarks.loads import Cost, Costs
from benchmarks.server import durable_server, slow_wire
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Store
from tests.postgres import PostgresServer

if TYPE_CHECKING:
    from podium.engine.distributed import DbosEngine
    from podium.store.postgres_store import PostgresStore

WIRE_SECONDS = 0.004
"""How long the slow wire keeps everything: long beside what a commit takes on loopback."""


@dataclass(frozen=True)
class Measured:
    """Costs, and what a run that is hosted and a work that is kept take up."""

    costs: Costs
    commits: dict[int, float]
    """Works in a commit → milliseconds it took, median."""
    hosted_run_bytes: int
    """Of a worker's memory."""
    log_bytes: int
    """What a work adds to the server's write-ahead log."""
    kept_bytes: int
    """What it adds to the database."""


async def measure() -> Measured:
    from podium.engine.distributed.database import DbosDatabase, migrate

    with durable_server() as server, tempfile.TemporaryDirectory() as folder:
        name = server.create_database()
        url = server.url(name)
        await asyncio.to_thread(migrate, url)
        dbos = DbosDatabase(url)
        async with opened_store(url, Path(folder)) as store:
            spent = {
                size: await store_costs.commits(store, server, size) for size in store_costs.SIZES
            }
            log, kept = await _bytes_of_a_work(store, server, name)
            claim, settle = await engine_costs.claims(store, server, dbos)
            look = await engine_costs.looks(store, server)
            ask = await engine_costs.questions(store, server)
            trips = await _round_trips(store, server, url, Path(folder))
            async with opened_engine(store, url) as engine:
                step = await engine_costs.steps(engine, server)
                tick = await engine_costs.ticks(engine, server)
                grown = await engine_costs.memory_of_a_run(engine)
        await asyncio.to_thread(dbos.close)
    commit, work = (
        replace(cost, trips=count)
        for cost, count in zip(store_costs.fit(spent), trips, strict=True)
    )
    own = Cost(client=max(0.0, step.client - commit.client - work.client))
    return Measured(
        costs=Costs(commit, work, own, look, ask, claim, settle, tick),
        commits={size: cost.seconds * 1000 for size, cost in spent.items()},
        hosted_run_bytes=grown,
        log_bytes=log,
        kept_bytes=kept,
    )


async def _round_trips(
    near: Store, server: PostgresServer, url: str, folder: Path
) -> tuple[float, float]:
    async with slow_wire(url, WIRE_SECONDS) as slow, opened_store(slow, folder) as far:
        return await store_costs.round_trips(near, far, server, WIRE_SECONDS)


async def _bytes_of_a_work(store: Store, server: PostgresServer, name: str) -> tuple[int, int]:
    """By how much log and database grow with each work."""

    def sizes() -> tuple[int, int]:
        asked = f"SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, pg_database_size('{name}')"
        [(log, kept)] = server.administer(asked)
        return int(log), int(kept)

    before = await asyncio.to_thread(sizes)
    rounds = 20
    await store_costs.commits(store, server, 64, rounds)
    after = await asyncio.to_thread(sizes)
    # Each round makes one more commit beside, of a work that keeps nothing.
    log, kept = ((now - then) // (64 * rounds) for now, then in zip(after, before, strict=True))
    return log, kept


@asynccontextmanager
async def opened_store(url: str, folder: Path) -> AsyncIterator[PostgresStore]:
    from podium.engine.distributed import enqueue
    from podium.store.postgres_store import PostgresStore

    place = await asyncio.to_thread(tempfile.mkdtemp, dir=folder)
    store = await PostgresStore.open(
        url, folder=Path(place), clock=SystemClock(), ids=SystemIds(), queued=enqueue
    )
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def opened_engine(store: Store, url: str) -> AsyncIterator[DbosEngine]:
    from podium.engine.distributed import DbosEngine
    from podium.store.postgres_presence import PostgresPresence

    clock, ids = SystemClock(), SystemIds()
    engine = DbosEngine(store, url=url, clock=clock, ids=ids, presence=PostgresPresence(url))
    try:
        yield engine
    finally:
        await engine.close()
