"""Listing and showing runs with a long past, against an empty file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import Figure, median
from podium.core.events import NoteTaken, RunQueued, RunSucceeded
from podium.core.work import Run, RunStatus, StepRecord, StepStatus
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import EventQuery, RunQuery, StoreView, Transaction
from podium.store import SqlStore

PAST_RUNS = 100_000
ROUNDS = 60
FEW = 50

Look = Callable[[StoreView], object]


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        # Both have as many failed runs as a page shows, so that both give back as much.
        short, one = await _filled(Path(folder) / "short", FEW, failed_every=1)
        long, other = await _filled(Path(folder) / "long", PAST_RUNS, failed_every=50)
        listing = await _both(short, long, _list)
        failed = await _both(short, long, _list_failed)
        showing = await _both(short, long, _show(one), _show(other))
        await short.close()
        await long.close()
    return [
        _figure("list newest 50 runs, 100,000 past runs", listing),
        _figure("list failed runs, 100,000 past runs", failed),
        _figure("show a run, 100,000 past runs", showing),
    ]


def _figure(name: str, seconds: tuple[float, float]) -> Figure:
    few, many = seconds
    return Figure(name, many * 1000, "ms", few * 1000, f"with {FEW} runs", most_ratio=2.0)


async def _filled(folder: Path, count: int, *, failed_every: int) -> tuple[SqlStore, str]:
    clock, ids = SystemClock(), SystemIds()
    store = await SqlStore.open(folder, clock=clock, ids=ids)
    names = [ids.new("run") for _ in range(count)]
    for start in range(0, count, 1000):

        def fill(tx: Transaction, start: int = start) -> None:
            for number, name in enumerate(names[start : start + 1000], start):
                _add(tx, name, number, clock, failed=number % failed_every == 0)

        await store.write(fill)
    return store, names[count // 2]


def _add(tx: Transaction, run_id: str, number: int, clock: SystemClock, *, failed: bool) -> None:
    now = clock.now()
    status = RunStatus.FAILED if failed else RunStatus.SUCCEEDED
    tx.add_run(Run(id=run_id, flow="bench", task=f"task {number}", status=status, created_at=now))
    tx.append(run_id, RunQueued(flow="bench", flow_version=1))
    for step in range(3):
        tx.save_step(
            StepRecord(
                run_id=run_id,
                key=f"step{step}",
                status=StepStatus.COMPLETED,
                ordinal=step,
                started_at=now,
            )
        )
        tx.append(run_id, NoteTaken(text=f"step {step}"))
    tx.append(run_id, RunSucceeded())


def _list(view: StoreView) -> object:
    return view.runs(RunQuery(limit=50))


def _list_failed(view: StoreView) -> object:
    return view.runs(RunQuery(statuses=(RunStatus.FAILED,), limit=50))


def _show(run_id: str) -> Look:
    def look(view: StoreView) -> object:
        return (
            view.run(run_id),
            view.steps(run_id),
            view.calls(run_id),
            view.approvals(run_id=run_id),
            view.events(EventQuery(run_id=run_id, limit=50)),
        )

    return look


async def _both(
    short: SqlStore, long: SqlStore, first: Look, second: Look | None = None
) -> tuple[float, float]:
    few, many = [], []
    for _ in range(ROUNDS):
        few.append(await _timed(short, first))
        many.append(await _timed(long, second or first))
    return median(few), median(many)


async def _timed(store: SqlStore, work: Look) -> float:
    began = time.perf_counter()
    await store.read(work)
    return time.perf_counter() - began
