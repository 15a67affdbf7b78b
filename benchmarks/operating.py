"""Costs of the operator: a message analysed, with a small registry and a large one, and a plan queued."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.figures import Figure, median, percentile
from benchmarks.large_pack import MESSAGES, TOOLS, write_large_pack
from podium.app.app import Podium, open_podium
from podium.app.packs import pack_file
from podium.config.configuration import load_configuration
from podium.config.trust import TrustBook
from podium.jobs.operator import Operator
from podium.jobs.operator.bench.cases import utterance_cases
from podium.jobs.operator.composition import OperatorSetup, build_operator
from podium.jobs.operator.models import OperatorJob, OperatorMode
from podium.store.sqlite_store import DATABASE_NAME
from podium.tools.packs import load_pack

ANALYZE_ROUNDS = 2
ENQUEUED = 1_500
ASKERS = 16
"""At a time, as at a console that serves several people."""
TASK = "create a task to call John"
LEAST_PER_SECOND = 500.0


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        env = {"HOME": folder, "PODIUM_HOME": str(Path(folder, "home")), "PODIUM_USER": "bench"}
        configuration = load_configuration(env, project=project)
        async with open_podium(configuration, env) as podium:
            small = await _operator(podium, "roofing")
            messages = [case.say for case in utterance_cases()]
            large = await _large(podium, Path(folder, "large"))
            return [
                *await _analyzed("roofing", small, messages, most=5.0),
                *await _analyzed(f"{TOOLS:,} tools", large, MESSAGES, most=20.0),
                *await _enqueued(podium, small),
            ]


async def _operator(podium: Podium, pack: str) -> Operator:
    return await build_operator(podium, OperatorSetup(pack=pack, classifier="embedded"))


async def _large(podium: Podium, folder: Path) -> Operator:
    pack = load_pack(write_large_pack(folder))
    TrustBook(podium.folders.user_state).trust(pack_file(pack), pack.digest)
    return await _operator(podium, str(folder))


async def _analyzed(
    name: str, operator: Operator, messages: Sequence[str], *, most: float
) -> list[Figure]:
    seconds = []
    await operator.process(messages[0])  # the first message builds the index
    for message in [*messages] * ANALYZE_ROUNDS:
        began = time.perf_counter()
        await operator.process(message)
        seconds.append(time.perf_counter() - began)
    return [
        Figure(f"analyze with {name}, p50", median(seconds) * 1000, "ms", most=most),
        Figure(f"analyze with {name}, p95", percentile(seconds, 0.95) * 1000, "ms"),
    ]


async def _enqueued(podium: Podium, operator: Operator) -> list[Figure]:
    """One call a plan, one plan a run; each is durable before its asker goes on."""
    planned = await operator.process(TASK, OperatorMode.PLAN)
    assert planned.plan is not None
    job = OperatorJob(plan=planned.plan, asked_by="bench")

    async def ask(askers: int, item: int) -> float:
        """Milliseconds a call."""

        async def asker() -> None:
            for _ in range(item):
                await operator.carry_out(job, OperatorMode.ENQUEUE)

        began = time.perf_counter()
        await asyncio.gather(*(asker() for _ in range(askers)))
        return (time.perf_counter() - began) / (askers * item) * 1000

    await ask(1, ENQUEUED)  # see `durable`: both sides are measured once the log has its length
    one, several = await ask(1, ENQUEUED), await ask(ASKERS, ENQUEUED // ASKERS)
    bare = await asyncio.to_thread(_bare_insert, podium.folders.state / DATABASE_NAME)
    floor, limit = "bare run and event, committed", 1000 / LEAST_PER_SECOND
    return [
        Figure("enqueue a call, one asker", one, "ms", bare, floor, most=limit),
        Figure(f"enqueue a call, {ASKERS} askers", several, "ms", bare, floor, most=limit),
    ]


def _bare_insert(database: Path) -> float:
    """Milliseconds of a run and its first event inserted into bare tables of the same columns, one commit each."""
    with closing(sqlite3.connect(database)) as ours:
        run = ours.execute("SELECT * FROM runs LIMIT 1").fetchone()
        query = "SELECT * FROM events WHERE run_id = ? LIMIT 1"
        event = ours.execute(query, run[:1]).fetchone()
    with tempfile.TemporaryDirectory() as folder:
        bare = sqlite3.connect(Path(folder, "bare.db"), isolation_level=None)
        with closing(bare):
            bare.execute("PRAGMA journal_mode=WAL")
            bare.execute("PRAGMA synchronous=FULL")
            for name, row in (("runs", run), ("events", event)):
                columns = ", ".join(f"c{number}" for number in range(len(row)))
                bare.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {columns})")
            seconds = [_timed_insert(bare, run, event) for _ in range(2 * ENQUEUED)]
    return sum(seconds[ENQUEUED:]) / ENQUEUED * 1000


def _timed_insert(
    bare: sqlite3.Connection, run: Sequence[object], event: Sequence[object]
) -> float:
    began = time.perf_counter()
    bare.execute("BEGIN IMMEDIATE")
    for name, row in (("runs", run), ("events", event)):
        bare.execute(f"INSERT INTO {name} VALUES (NULL{', ?' * len(row)})", row)
    bare.execute("COMMIT")
    return time.perf_counter() - began
