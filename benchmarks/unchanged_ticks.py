"""Whole ticks of a sense loop in which nothing changed: lock, memory, marks, log and telemetry with them."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.time_meter import resident_bytes
from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.jobs.sense import SENSE, TickDeps, tick
from podium.jobs.sense.composition import tick_deps
from podium.jobs.sense.models import PlannerStatus, TickOutcome
from podium.ports import RunQuery

SETTLED_AFTER = 500
"""So many ticks until caches are filled and the allocator has what it needs."""
RULES = "flows: {sense: {planner: rules}}\n"


@dataclass(frozen=True)
class Idled:
    """Costs of ticks that had nothing to do."""

    ticks: int
    milliseconds: float
    """Of one tick, on average."""
    planner_calls: int
    tokens: int
    grown_bytes: int
    """From the tick on by which it had settled."""


async def idled(root: Path, ticks: int) -> Idled:
    """So many ticks of one process on a root that does not change."""
    async with loop_at(root) as (podium, deps):
        await _idle(deps, SETTLED_AFTER)
        before = _resident_bytes()
        began = time.perf_counter()
        last = await _idle(deps, ticks - SETTLED_AFTER)
        seconds = time.perf_counter() - began
        grown = _resident_bytes() - before
        store = await podium.store()
        planned = await store.read(lambda view: len(view.runs(RunQuery(flow=SENSE, limit=ticks))))
    return Idled(
        ticks=ticks,
        milliseconds=seconds * 1000 / (ticks - SETTLED_AFTER),
        planner_calls=planned - 1,  # the first tick, which had everything to see
        tokens=last.tokens,
        grown_bytes=grown,
    )


@asynccontextmanager
async def idle_tick(root: Path) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """One tick on a root that has been planned for and does not change, to be timed."""
    async with loop_at(root) as (_, deps):

        async def once() -> None:
            await _idle(deps, 1)

        yield once


@asynccontextmanager
async def loop_at(root: Path) -> AsyncIterator[tuple[Podium, TickDeps]]:
    """A loop as the command line has it, with rules for a planner, after its first tick."""
    home = root.with_name(f"{root.name}-home")
    environ = {"PODIUM_HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)}
    await asyncio.to_thread(_configure, home)
    podium = Podium(load_configuration(environ, project=root), environ)
    try:
        async with AsyncExitStack() as stack:
            deps = await tick_deps(podium, stack)
            first = await tick(deps, manual=False)
            if first.status is not PlannerStatus.OK:
                raise AssertionError(f"the first tick did not plan: {first.summary()}")
            yield podium, deps
    finally:
        await podium.close()


def _configure(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(RULES)


async def _idle(deps: TickDeps, ticks: int) -> TickOutcome:
    for _ in range(ticks):
        outcome = await tick(deps, manual=False)
        if outcome.status is not PlannerStatus.SKIPPED:
            raise AssertionError(f"a tick was not idle: {outcome.summary()}")
    return outcome


def _resident_bytes() -> int:
    gc.collect()
    return resident_bytes()
