"""`python -m benchmarks.scaling`: steps per second of 1, 2, 4 and 8 workers that share one PostgreSQL.

Runs of ten steps that do nothing are queued before; then all workers begin together. DBOS by itself does
the same beside them, and Prefect too where `--prefect` names a Python that has it. The measured curve is
kept in `points.json`, for the simulation. `--worker` is one of the workers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import peer_dbos, peer_prefect
from benchmarks.crew import crew, module, read_line, say
from benchmarks.figures import Figure, median
from benchmarks.machine_costs import opened_engine, opened_store
from benchmarks.server import durable_server
from benchmarks.simulating import POINTS_FILE, Points
from benchmarks.worker_pace import Pace, pace
from podium.core.work import QueueSpec
from podium.engine import FlowDefinition
from podium.ports import Engine, FlowContext, StepContext
from tests.postgres import PostgresServer

WORKERS = (1, 2, 4, 8)
ROOM = 16
"""Runs that one worker has in hand at once, ours and the peers'."""
STEPS = peer_dbos.STEPS
BODY = peer_dbos.BODY
QUEUE = "bench"
RUNS = 300
RUNS_OF_MANY = 60
"""For each worker, where there are so many that `RUNS` would be over before all have begun."""
QUICK_RUNS = 24
PREFECT_RUNS = 16
"""A step of Prefect's takes a tenth of a second."""
FLOOR_COMMITS = 500

COUNTING = (
    "SELECT (SELECT count(*) FROM podium.steps), "
    "(SELECT count(*) FROM podium.runs WHERE status = 'succeeded')"
)


@dataclass(frozen=True)
class Point:
    """Throughput of so many workers, and of so many processes of each peer."""

    workers: int
    commits_per_second: float
    """What one connection did just before, an insert of one row in each commit."""
    podium: Pace
    dbos: Pace
    prefect: Pace | None = None


@dataclass(frozen=True)
class Curve:
    """All points of one pass."""

    points: tuple[Point, ...]

    def kept(self) -> Points:
        measured: dict[int, float | None] = {
            point.workers: round(point.podium.steps_per_second, 1) for point in self.points
        }
        return Points(os.cpu_count() or 1, ROOM, STEPS, measured)


async def measure(quick: bool = False) -> list[Figure]:
    curve = await measure_curve(WORKERS[:2] if quick else WORKERS, QUICK_RUNS if quick else None)
    return [
        Figure(
            f"steps a second, {point.workers} workers",
            point.podium.steps_per_second,
            "/s",
            point.dbos.steps_per_second,
            "DBOS alone",
        )
        for point in curve.points
    ]


async def measure_curve(
    workers: Sequence[int], runs: int | None = None, prefect: Path | None = None
) -> Curve:
    """`runs` for each point; None: enough of them for some seconds."""
    points = []
    with durable_server() as server:
        for size in workers:
            many = runs or max(RUNS, RUNS_OF_MANY * size)
            points.append(
                Point(
                    size,
                    commits_per_second=await asyncio.to_thread(_bare_commits, server),
                    podium=await _podium(server, size, many),
                    dbos=await _dbos(server, size, many),
                    prefect=await _prefect(server, size, prefect) if prefect else None,
                )
            )
    return Curve(tuple(points))


async def _podium(server: PostgresServer, size: int, runs: int) -> Pace:
    from podium.engine.distributed.database import migrate

    url = server.url(server.create_database())
    await asyncio.to_thread(migrate, url)
    with tempfile.TemporaryDirectory() as folder:
        async with opened_store(url, Path(folder)) as store, opened_engine(store, url) as engine:
            _register_flow(engine)
            for start in range(0, runs, 100):
                count = min(100, runs - start)
                await asyncio.gather(*(engine.start("scaling", queue=QUEUE) for _ in range(count)))
        command = module("scaling", "--worker", url, folder)
        return await _begun(command, size, url, COUNTING, runs)


async def _dbos(server: PostgresServer, size: int, runs: int) -> Pace:
    url = server.url(server.create_database())
    await peer_dbos.fill(url, runs)
    return await _begun(peer_dbos.command(url, ROOM), size, url, peer_dbos.COUNTING, runs)


async def _prefect(server: PostgresServer, size: int, python: Path) -> Pace:
    url = server.url(server.create_database())
    async with peer_prefect.server(python, url) as environ:
        command = peer_prefect.command(python, max(1, PREFECT_RUNS // size), ROOM)
        runs = max(1, PREFECT_RUNS // size) * size
        paced = await _begun(command, size, url, peer_prefect.COUNTING, runs, environ)
    # All its flows end at about the same moment, so there is no middle to be seen.
    return Pace(paced.runs_per_second * STEPS, paced.runs_per_second)


async def _begun(
    command: Sequence[str],
    size: int,
    url: str,
    counting: str,
    runs: int,
    environ: dict[str, str] | None = None,
) -> Pace:
    async with crew(command, size, environ) as members:
        for member in members:
            member.send_line("begin")
        return await pace(url, counting, runs, STEPS, members)


def _bare_commits(server: PostgresServer) -> float:
    """Return how many inserts of one row, each committed by itself, one connection does in a second."""
    import psycopg

    spent = []
    with psycopg.connect(server.url(server.create_database()), autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (number bigint PRIMARY KEY, body text)")
        for number in range(FLOOR_COMMITS):
            began = time.perf_counter()
            connection.execute("INSERT INTO bare VALUES (%s, %s)", (number, BODY))
            spent.append(time.perf_counter() - began)
    return 1 / median(spent)


def _register_flow(engine: Engine) -> None:
    async def nothing(step: StepContext) -> str:
        return BODY

    async def flow(ctx: FlowContext, _: Any) -> None:
        for index in range(STEPS):
            await ctx.step("nothing", nothing, index=index)

    engine.register(FlowDefinition("scaling", flow))


async def _work(url: str, folder: Path) -> None:
    async with opened_store(url, folder) as store, opened_engine(store, url) as engine:
        _register_flow(engine)
        say(ready=True)
        await read_line()
        async with engine.serve([QueueSpec(name=QUEUE, worker_concurrency=ROOM)]):
            await read_line()


def table(curve: Curve) -> list[str]:
    """One line for each number of workers: ours, how it grew, and each peer with our ratio to it."""
    first = curve.points[0]
    lines = [
        f"{'workers':>7} {'steps/s':>8} {'runs/s':>7} {'grown':>6} {'commits':>8}   "
        f"{'DBOS':>8} {'runs/s':>7} {'grown':>6} {'ratio':>7}   {'Prefect':>8} {'ratio':>7}"
    ]
    for point in curve.points:
        own, peer, other = point.podium, point.dbos, point.prefect
        beside = ""
        if other is not None:
            ratio = own.steps_per_second / other.steps_per_second
            beside = f"{other.steps_per_second:8.1f} {ratio:6.1f}x"
        lines.append(
            f"{point.workers:7d} {own.steps_per_second:8.0f} {own.runs_per_second:7.1f} "
            f"{own.steps_per_second / first.podium.steps_per_second:5.2f}x "
            f"{own.steps_per_second / point.commits_per_second:7.2f}x   "
            f"{peer.steps_per_second:8.0f} {peer.runs_per_second:7.1f} "
            f"{peer.steps_per_second / first.dbos.steps_per_second:5.2f}x "
            f"{own.steps_per_second / peer.steps_per_second:6.2f}x   {beside}".rstrip()
        )
    return [*lines, "commits: against bare commits of a row by one connection, just before"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling")
    parser.add_argument("--quick", action="store_true", help="few runs, and no results are stored")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS, metavar="N")
    parser.add_argument(
        "--prefect", type=Path, metavar="PYTHON", help="a Python with Prefect installed"
    )
    parser.add_argument(
        "--points", type=Path, default=POINTS_FILE, help="file in which to store the curve"
    )
    parser.add_argument("--worker", nargs=2, metavar=("URL", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker:
        asyncio.run(_work(chosen.worker[0], Path(chosen.worker[1])))
        return
    if min(chosen.workers) < 1:
        parser.error("--workers must be at least 1")
    if chosen.prefect and not chosen.prefect.exists():
        parser.error(f"{chosen.prefect} does not exist; pass a Python with Prefect installed")
    runs = QUICK_RUNS if chosen.quick else None
    curve = asyncio.run(measure_curve(chosen.workers, runs, chosen.prefect))
    print("\n".join(table(curve)))
    if not chosen.quick:
        curve.kept().write(chosen.points)


if __name__ == "__main__":
    main()
