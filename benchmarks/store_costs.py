"""Costs of commits: by themselves, for each work in them, and how often each waits for an answer.

Several works share a commit because a first work holds the writer up until all of them are handed in.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.loads import Cost
from benchmarks.time_meter import PARTS, Meter, typical
from podium.core.events import StepCompleted, StepStarted
from podium.core.work import Run, RunStatus, StepRecord, StepStatus
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Store, Transaction
from tests.postgres import PostgresServer

SIZES = (1, 8, 64, 128)
"""Works in one commit."""
ROUNDS = 40
BODY = "x" * 200
HELD_UP_SECONDS = 10.0
"""No work holds the writer up for longer, whatever happens to who should let it go."""


async def commits(store: Store, server: PostgresServer, size: int, rounds: int = ROUNDS) -> Cost:
    """A commit of so many works, each what a step leaves behind."""
    runs = [owned_run() for _ in range(size)]
    await store.write(lambda tx: [tx.add_run(run) for run in runs])
    alone, beside = [], []
    for number in range(rounds):
        works = [partial(_record_step, run.id, number) for run in runs]
        alone.append(await _together(store, server, []))
        beside.append(await _together(store, server, works))
    less, more = typical(alone), typical(beside)
    return Cost(*(max(0.0, getattr(more, part) - getattr(less, part)) for part in PARTS))


def fit(spent: dict[int, Cost]) -> tuple[Cost, Cost]:
    """Return the cost of a commit by itself and of each work in it: the lines that miss each point least, in parts of it."""
    lines = [_line({size: getattr(cost, part) for size, cost in spent.items()}) for part in PARTS]
    return Cost(*(fixed for fixed, _ in lines)), Cost(*(item for _, item in lines))


def _line(points: dict[int, float]) -> tuple[float, float]:
    """Intercept and slope, neither below 0. A point counts by its share, not by its size."""
    weights = {size: 1 / size**2 for size in points}
    whole = sum(weights.values())
    middle = sum(weight * size for size, weight in weights.items()) / whole
    mean = sum(weights[size] * value for size, value in points.items()) / whole
    rise = sum(weights[size] * (size - middle) * (points[size] - mean) for size in points)
    slope = rise / sum(weight * (size - middle) ** 2 for size, weight in weights.items())
    slope = max(0.0, min(slope, mean / middle))
    return mean - slope * middle, slope


async def round_trips(
    near: Store, far: Store, server: PostgresServer, wire_seconds: float
) -> tuple[float, float]:
    """Answers that a commit waits for by itself and for each work, told by a wire that is slow each way."""
    found = []
    for size in (1, 9):
        slow = await commits(far, server, size, rounds=7)
        quick = await commits(near, server, size, rounds=7)
        found.append((slow.seconds - quick.seconds) / (2 * wire_seconds))
    item = max(0.0, (found[1] - found[0]) / 8)
    return max(0.0, found[0] - item), item


def owned_run(queue: str | None = None) -> Run:
    """A run in the hands of a worker, or in a queue."""
    return Run(
        id=SystemIds().new("run"),
        flow="bench",
        status=RunStatus.RUNNING if queue is None else RunStatus.QUEUED,
        owner="wrk_bench" if queue is None else None,
        queue=queue,
        created_at=SystemClock().now(),
        fence=1,
    )


async def _together(
    store: Store, server: PostgresServer, works: Sequence[Callable[[Transaction], None]]
) -> Cost:
    """From when a work lets the writer go on until all works, in the next commit, are durable."""
    held_up, let_go = threading.Event(), threading.Event()

    def hold_up(tx: Transaction) -> None:
        held_up.set()
        let_go.wait(HELD_UP_SECONDS)

    first = asyncio.ensure_future(store.write(hold_up))
    await asyncio.sleep(0)
    await asyncio.to_thread(held_up.wait, HELD_UP_SECONDS)
    rest = [asyncio.ensure_future(store.write(work)) for work in works]
    await asyncio.sleep(0)
    meter = Meter(server)
    let_go.set()
    await asyncio.gather(first, *rest)
    return meter.read()


def _record_step(run_id: str, number: int, tx: Transaction) -> None:
    """Write what a step of a flow leaves behind, as its owner writes it."""
    now = SystemClock().now()
    key = f"nothing#{number}"
    tx.guard(run_id, 1)
    tx.append(run_id, StepStarted(step=key, attempt=1))
    tx.save_step(
        StepRecord(
            run_id=run_id,
            key=key,
            status=StepStatus.COMPLETED,
            ordinal=number,
            output=BODY,
            started_at=now,
            finished_at=now,
        )
    )
    tx.append(run_id, StepCompleted(step=key, seconds=0.0))
