"""Durable append and step, against the bare commit and LangGraph's checkpointer."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from benchmarks.figures import Figure, median
from benchmarks.floor import BareSqlite
from podium.core.events import NoteTaken
from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import FlowContext, StepContext
from podium.store import SqlStore

ROUNDS = 1500
BODY = "x" * 200


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        floor = BareSqlite(place / "bare.db")
        store = await SqlStore.open(place / "state", clock=SystemClock(), ids=SystemIds())
        # Until a write-ahead log has reached its full length once, every commit makes it longer,
        # which costs more than writing over it: both sides are measured after that.
        await _appends(store, floor)
        appends, floor_a = await _appends(store, floor)
        steps, floor_b = await _steps(store, floor, place)
        await store.close()
        floor.close()
        peer = await asyncio.to_thread(_langgraph_step, place / "peer.db")
    milli = 1000.0
    figures = [
        Figure(
            "awaited durable append",
            median(appends) * milli,
            "ms",
            median(floor_a) * milli,
            "bare insert+commit",
            most_ratio=2.5,
        ),
        Figure(
            "ctx.step, one commit",
            median(steps) * milli,
            "ms",
            median(floor_b) * milli,
            "bare insert+commit",
            most_ratio=4.0,
        ),
    ]
    if peer is not None:
        figures.append(
            Figure(
                "LangGraph SqliteSaver, one node, WAL/FULL",
                peer * milli,
                "ms",
                median(floor_b) * milli,
                "bare insert+commit",
            )
        )
    return figures


async def _appends(store: SqlStore, floor: BareSqlite) -> tuple[list[float], list[float]]:
    ours, bare = [], []
    run_id = SystemIds().new("run")
    body = NoteTaken(text=BODY)
    for _ in range(ROUNDS):
        bare.append(floor.insert(BODY))
        began = time.perf_counter()
        await store.write(lambda tx: tx.append(run_id, body))
        ours.append(time.perf_counter() - began)
    return ours, bare


async def _steps(
    store: SqlStore, floor: BareSqlite, place: Path
) -> tuple[list[float], list[float]]:
    ours: list[float] = []
    bare: list[float] = []

    async def nothing(step: StepContext) -> str:
        return BODY

    async def flow(ctx: FlowContext, _: Any) -> None:
        for index in range(ROUNDS):
            bare.append(floor.insert(BODY))
            began = time.perf_counter()
            await ctx.step("nothing", nothing, index=index)
            ours.append(time.perf_counter() - began)

    engine = LocalEngine(
        store, clock=SystemClock(), ids=SystemIds(), presence=FolderPresence(place / "workers")
    )
    engine.register(FlowDefinition("bench", flow))
    run = await engine.start("bench")
    await engine.finish(run.id)
    await engine.close()
    return ours, bare


class _State(TypedDict):
    number: int


def _langgraph_step(path: Path) -> float | None:
    """Seconds a node of a peer's graph takes; None when the peer is not installed."""
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.graph import END, START, StateGraph
    except ImportError:
        return None
    nodes, rounds = 10, 30
    graph: Any = StateGraph(_State)
    for number in range(nodes):
        graph.add_node(f"n{number}", lambda state: {"number": state["number"] + 1})
        graph.add_edge(START if number == 0 else f"n{number - 1}", f"n{number}")
    graph.add_edge(f"n{nodes - 1}", END)
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    compiled = graph.compile(checkpointer=SqliteSaver(connection))
    seconds = [_timed(partial(_invoke, compiled, str(number))) for number in range(rounds)]
    connection.close()
    return median(seconds) / nodes


def _invoke(compiled: Any, thread: str) -> None:
    compiled.invoke({"number": 0}, {"configurable": {"thread_id": thread}}, durability="sync")


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
