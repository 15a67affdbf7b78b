"""A worker on one machine, made to be killed, stopped, cut off and restarted: `ten` runs of queue `work`."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

from podium.core.errors import LeaseLost
from podium.core.model import FrozenModel
from podium.core.work import QueueSpec
from podium.engine import FlowDefinition
from podium.engine.distributed import DbosEngine, enqueue
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import FlowContext, StepContext
from podium.store.postgres_presence import PostgresPresence
from podium.store.postgres_store import PostgresStore

STEPS = 10


class Duty(FrozenModel):
    """Parameters that a worker gets at its start."""

    url: str
    machine: str
    folder: str
    """Where the outside world is, and the worker's own state."""
    concurrency: int
    worker_concurrency: int

    @property
    def queue(self) -> QueueSpec:
        return QueueSpec(
            name="work",
            concurrency=self.concurrency,
            worker_concurrency=self.worker_concurrency,
        )


class Errand(FrozenModel):
    """The input of a run."""

    folder: str
    longest_step_seconds: float


async def ten_steps(ctx: FlowContext, errand: Errand) -> int:
    """Each step leaves a mark in the outside world under its idempotency key, and returns its fence."""
    folder, fence = Path(errand.folder), ctx.run.fence
    for number in range(STEPS):

        async def mark(step: StepContext) -> int:
            began = time.time_ns() // 1000
            await asyncio.sleep(random.uniform(0, errand.longest_step_seconds))
            append(folder / "effects", f"{step.idempotency_key} {fence} {os.getpid()} {began}")
            return fence

        try:
            await ctx.step("mark", mark, index=number)
        except LeaseLost:
            append(folder / "refusals", f"{ctx.run.id} {number} {fence} {os.getpid()}")
            raise
    return STEPS


TEN = FlowDefinition("ten", ten_steps, input_type=Errand)


def append(path: Path, line: str) -> None:
    """One write, which the kernel does not mix with those of others."""
    file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(file, f"{line}\n".encode())
    os.close(file)


async def open_engine(url: str, folder: Path, machine: str) -> tuple[PostgresStore, DbosEngine]:
    clock, ids = SystemClock(), SystemIds()
    store = await PostgresStore.open(url, folder=folder, clock=clock, ids=ids, queued=enqueue)
    engine = DbosEngine(
        store, url=url, clock=clock, ids=ids, presence=PostgresPresence(url), host=machine
    )
    engine.register(TEN)
    return store, engine


async def main(duty: Duty) -> None:
    end_requested = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end_requested.set)
    folder = Path(duty.folder)
    store, engine = await open_engine(duty.url, folder / duty.machine, duty.machine)
    async with engine.serve([duty.queue]):
        append(folder / "births", f"{engine.worker_id} {os.getpid()} {time.time_ns() // 1000}")
        await end_requested.wait()
    await engine.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Duty.model_validate_json(sys.argv[1])))
