"""Costs of an engine: a look at what changed, a claim, a step, a second without work, a hosted run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from benchmarks.loads import Cost
from benchmarks.store_costs import BODY, owned_run
from benchmarks.time_meter import Meter, resident_bytes, typical
from podium.core.work import QueueSpec
from podium.engine import FlowDefinition
from podium.ports import Engine, FlowContext, StepContext, Store
from tests.postgres import PostgresServer

if TYPE_CHECKING:
    from podium.engine.distributed.database import DbosDatabase
from podium.engine.distributed.workflows import asked, asked_for

STEPS = 300
LOOKS = 300
CLAIMS = 150
HOSTED = 1000
IDLE_SECONDS = 8.0
QUEUE = "bench"

READ_ROUND_TRIPS = 2.0
"""Of a read: what it asks for is sent with its beginning, and its end is waited for."""
STATEMENT_ROUND_TRIPS = 1.0
"""Of each statement that DBOS makes, beginning and commit among them."""


async def looks(store: Store, server: PostgresServer) -> Cost:
    """Measure the reads of a worker when it hears of a commit."""
    spent = []
    for _ in range(LOOKS):
        meter = Meter(server)
        await store.read(
            lambda view: (view.untaken_signals(["run_a", "run_b"]), view.cancel_wished())
        )
        spent.append(meter.read())
    return replace(typical(spent), trips=READ_ROUND_TRIPS + 1)


async def questions(store: Store, server: PostgresServer) -> Cost:
    """Measure the lookups of a worker with a free slot before it claims."""
    spent = []
    for _ in range(LOOKS):
        meter = Meter(server)
        await store.read(lambda view: view.next_due_at())
        await store.read(lambda view: asked_for(asked(view), QUEUE))
        spent.append(meter.read())
    return replace(typical(spent), trips=2 * READ_ROUND_TRIPS)


async def claims(store: Store, server: PostgresServer, dbos: DbosDatabase) -> tuple[Cost, Cost]:
    """A run of a queue handed out by DBOS, and its place given back."""
    await asyncio.to_thread(dbos.register, QueueSpec(name=QUEUE))
    queued = [owned_run(QUEUE) for _ in range(CLAIMS)]
    await store.write(lambda tx: [tx.add_run(run) for run in queued])
    [code] = await store.read(lambda view: asked_for(asked(view), QUEUE))

    def claim_one() -> tuple[Cost, Cost]:
        meter = Meter(server)
        [claim] = dbos.claim(QUEUE, "wrk_bench", code, 1)
        claimed, meter = meter.read(), Meter(server)
        dbos.settle(claim)
        return claimed, meter.read()

    spent = [await asyncio.to_thread(claim_one) for _ in range(CLAIMS)]
    claimed, settled = (typical([pair[number] for pair in spent]) for number in (0, 1))
    # Begin, version, pick, take, commit; begin, settle, commit.
    return (
        replace(claimed, trips=5 * STATEMENT_ROUND_TRIPS),
        replace(settled, trips=3 * STATEMENT_ROUND_TRIPS),
    )


async def steps(engine: Engine, server: PostgresServer) -> Cost:
    """A step that does nothing, its commit included."""

    async def nothing(step: StepContext) -> str:
        return BODY

    async def flow(ctx: FlowContext, _: Any) -> None:
        for index in range(STEPS):
            await ctx.step("nothing", nothing, index=index)

    engine.register(FlowDefinition("steps", flow))
    meter = Meter(server)
    run = await engine.start("steps")
    await engine.finish(run.id)
    return meter.read(STEPS)


async def ticks(engine: Engine, server: PostgresServer) -> Cost:
    """A second of a worker whose queue is empty. What nobody spends is not waited for."""
    async with engine.serve([QueueSpec(name="idle")]):
        meter = Meter(server)
        await asyncio.sleep(IDLE_SECONDS)
        return replace(meter.read(int(IDLE_SECONDS)), wait=0.0)


async def memory_of_a_run(engine: Engine) -> int:
    """Bytes that a process grows by for each run that it hosts, in the middle of a step."""
    done = asyncio.Event()

    async def think(step: StepContext) -> None:
        await done.wait()

    async def flow(ctx: FlowContext, _: Any) -> None:
        await ctx.step("think", think)

    engine.register(FlowDefinition("thinking", flow))
    before = resident_bytes()
    runs = [await engine.start("thinking") for _ in range(HOSTED)]
    grown = resident_bytes() - before
    done.set()
    for run in runs:
        await engine.finish(run.id)
    return max(0, grown) // HOSTED
