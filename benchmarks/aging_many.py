"""A PostgreSQL with 100,000 past runs and 1,000,000 steps, against one with few; and forgetting some of them.

`--work` is the other process: a run that goes from step to step while past runs are forgotten.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.crew import crew, module, read_line, say
from benchmarks.figures import Figure, median
from benchmarks.machine_costs import opened_engine, opened_store
from benchmarks.past import Past, add_past
from benchmarks.server import durable_server
from podium.app.databases import prune
from podium.app.run_list import list_runs
from podium.app.run_report import show_run
from podium.engine import FlowDefinition
from podium.ports import Engine, FlowContext, RunQuery, StepContext, Store
from tests.postgres import PostgresServer

PAST_RUNS = 100_000
FORGOTTEN_RUNS = 10_000
QUICK_RUNS = 500
FEW = 50
"""As many as a page shows, so that both databases give back as much."""
STEPS = 10
BODY = "The parser takes a trailing comma now; 214 tests passed, none failed. " * 3
QUIET_SECONDS = 5.0


@dataclass(frozen=True)
class Aged:
    """A database with a past."""

    url: str
    folder: Path
    store: Store
    engine: Engine
    past: Past


@dataclass(frozen=True)
class Lap:
    """Throughput and slowest step of the process that continues working for a while."""

    steps_per_second: float
    slowest_seconds: float


async def measure(quick: bool = False) -> list[Figure]:
    past = QUICK_RUNS if quick else PAST_RUNS
    with durable_server() as server, tempfile.TemporaryDirectory() as folder:
        async with (
            _aged(server, Path(folder), FEW) as short,
            _aged(server, Path(folder), past) as long,
        ):
            figures = [
                await _both(f"open, {past:,} past runs", short, long, _open, 9),
                await _both(f"list newest 50, {past:,} past runs", short, long, _list, 40),
                await _both(f"show a run, {past:,} past runs", short, long, _show, 40),
                await _both(f"a run of 10 steps, {past:,} past runs", short, long, _run, 20),
            ]
            forgotten = past * FORGOTTEN_RUNS // PAST_RUNS
            return figures + await _forget(long, forgotten, 1.0 if quick else QUIET_SECONDS)


@asynccontextmanager
async def _aged(server: PostgresServer, folder: Path, runs: int) -> AsyncIterator[Aged]:
    from podium.engine.distributed.database import migrate

    url = server.url(server.create_database())
    await asyncio.to_thread(migrate, url)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(url, folder))
        engine = await stack.enter_async_context(opened_engine(store, url))
        engine.register(FlowDefinition("ten", _ten))
        task = "Let the parser accept a trailing comma, and prove it by a test"
        template = await engine.finish((await engine.start("ten", task=task)).id)
        past = await asyncio.to_thread(add_past, url, template.id, runs)
        yield Aged(url, folder, store, engine, past)


async def _both(
    name: str, short: Aged, long: Aged, act: Callable[[Aged], Awaitable[object]], rounds: int
) -> Figure:
    """In turn, so that whatever else the machine does meets both."""
    few, many = [], []
    for _ in range(rounds):
        few.append(await _timed(act, short))
        many.append(await _timed(act, long))
    milli = 1000.0
    return Figure(
        name, median(many) * milli, "ms", median(few) * milli, f"with {FEW} runs", most_ratio=2.0
    )


async def _timed(act: Callable[[Aged], Awaitable[object]], aged: Aged) -> float:
    began = time.perf_counter()
    await act(aged)
    return time.perf_counter() - began


async def _open(aged: Aged) -> None:
    async with opened_store(aged.url, aged.folder):
        pass


async def _list(aged: Aged) -> object:
    return await list_runs(aged.store, RunQuery(limit=FEW))


async def _show(aged: Aged) -> object:
    return await show_run(aged.store, aged.past.ids[len(aged.past.ids) // 2])


async def _run(aged: Aged) -> object:
    return await aged.engine.finish((await aged.engine.start("ten")).id)


async def _ten(ctx: FlowContext, _: Any) -> None:
    for index in range(STEPS):
        await ctx.step("answer", _answer, index=index)


async def _answer(step: StepContext) -> str:
    return BODY


# --- forgetting while work goes on -------------------------------------------------------------


async def _forget(aged: Aged, forgotten: int, quiet_seconds: float) -> list[Figure]:
    """Forget the oldest of the past while another process works."""
    command = module("aging_many", "--work", aged.url, str(aged.folder))
    async with crew(command, 1) as [worker]:

        async def lap() -> Lap:
            worker.send_line("lap")
            return Lap(**await worker.hear())

        worker.send_line("begin")
        await worker.hear()
        await asyncio.sleep(quiet_seconds)
        quiet = await lap()
        began = time.perf_counter()
        gone = (await prune(aged.store, aged.past.age_of(forgotten))).runs
        seconds = time.perf_counter() - began
        meanwhile = await lap()
    if gone != forgotten:
        raise SystemExit(f"{gone} runs were forgotten instead of {forgotten}")
    milli = 1000.0
    return [
        Figure(f"forget {gone:,} runs while another works", seconds, "s", most=60.0),
        Figure(
            "its slowest step meanwhile",
            meanwhile.slowest_seconds * milli,
            "ms",
            quiet.slowest_seconds * milli,
            "before",
            most=2000.0,
        ),
        Figure(
            "its steps a second meanwhile",
            meanwhile.steps_per_second,
            "/s",
            quiet.steps_per_second,
            "before",
        ),
    ]


async def _work(url: str, folder: Path) -> None:
    """Go from step to step; each lap says what was done since the one before."""
    spent: list[float] = []
    over = asyncio.Event()

    async def flow(ctx: FlowContext, _: Any) -> None:
        index = 0
        while not over.is_set():
            began = time.perf_counter()
            await ctx.step("answer", _answer, index=index)
            spent.append(time.perf_counter() - began)
            index += 1

    async with opened_store(url, folder) as store, opened_engine(store, url) as engine:
        engine.register(FlowDefinition("going on", flow))
        say(ready=True)
        await read_line()
        run = await engine.start("going on")
        say(begun=True)
        since = time.perf_counter()
        while await read_line():
            now = time.perf_counter()
            say(
                steps_per_second=len(spent) / (now - since), slowest_seconds=max(spent, default=0.0)
            )
            spent.clear()
            since = now
        over.set()
        await engine.finish(run.id)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aging_many")
    parser.add_argument("--quick", action="store_true", help="few past runs")
    parser.add_argument("--work", nargs=2, metavar=("URL", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.work:
        asyncio.run(_work(chosen.work[0], Path(chosen.work[1])))
        return
    for figure in asyncio.run(measure(chosen.quick)):
        print(figure.line())


if __name__ == "__main__":
    main()
