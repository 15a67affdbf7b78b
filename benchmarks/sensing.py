"""Costs of ticks on a root with many files, against asking the file system about each of them and no more."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.figures import Figure, median
from benchmarks.unchanged_ticks import Idled, idle_tick, idled
from podium.jobs.sense.io import FileSource, FolderSource, SourceDeps
from podium.jobs.sense.options import SenseOptions
from podium.jobs.sense.planning.bundle import bundle_json, bundle_of
from podium.jobs.sense.ports import StateSource
from podium.platform.system_clock import SystemClock
from podium.store import Redactor

FILES = 10_000
FEW_FILES = 20
ROUNDS = 25
IDLE_TICKS = 10_000
NEW_PROCESSES = 7
MAX_GROWN_MB = 2.0
"""What allocators keep back now and then. A leak of 250 bytes a tick would show."""
OPTIONS = SenseOptions()
LAYOUT = OPTIONS.layout


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        many, few = Path(folder, "many"), Path(folder, "few")
        await asyncio.to_thread(_fill, many, FILES)
        await asyncio.to_thread(_fill, few, FEW_FILES)
        return [*await _against_bare(many), *_idle_figures(await idled(few, IDLE_TICKS))]


async def _against_bare(root: Path) -> list[Figure]:
    sources = sources_of(root)
    first = await _timed(lambda: _looked(sources))
    async with idle_tick(root) as tick:
        taken = await _in_turn(
            {
                "bare": lambda: _bare(root),
                "mark": lambda: _marked(sources),
                "look": lambda: _looked(sources),
                "bundle": lambda: _bundled(root, sources),
                "tick": tick,
            }
        )
    new = await asyncio.to_thread(_in_new_processes, root)
    bare = taken["bare"]
    files = f"{2 * FILES:,} files"
    return [
        _figure(f"an idle tick on {files}", taken["tick"], bare, most=2.0),
        _figure(f"marks of {files}, nothing new", taken["mark"], bare, most=2.0),
        _figure(f"looks at {files}, nothing new", taken["look"], bare, most=2.0),
        _figure("the same, with the bundle and its digest", taken["bundle"], bare, most=2.0),
        _figure("the first looks, which read 71 files", first, bare),
        _figure("marks in a new process", new["mark"], new["bare"], most=2.0),
    ]


def _idle_figures(idle: Idled) -> list[Figure]:
    ticks = f"of {idle.ticks:,} ticks, nothing new"
    return [
        Figure(f"one {ticks}", idle.milliseconds, "ms"),
        Figure(f"planner calls {ticks}", idle.planner_calls, "", most=0),
        Figure(f"tokens {ticks}", idle.tokens, "", most=0),
        Figure(f"memory grown, {ticks}", idle.grown_bytes / 1e6, "MB", most=MAX_GROWN_MB),
    ]


def sources_of(root: Path) -> list[StateSource]:
    """As the loop has them."""
    redactor = Redactor({"API_KEY": "sk-not-a-real-one-0123456789"})
    own = {LAYOUT.log, LAYOUT.telemetry, LAYOUT.parser_log}
    deps = SourceDeps(root, SystemClock(), redactor.text, own.__contains__, OPTIONS.file_bytes)
    return [
        FileSource(deps, "health", LAYOUT.health, stale_seconds=OPTIONS.health_stale_seconds),
        FolderSource(deps, "acks", LAYOUT.acks, pattern="*.ack.json", newest=OPTIONS.newest_acks),
        FolderSource(
            deps,
            "sessions",
            LAYOUT.sessions,
            pattern="*.yaml",
            newest=OPTIONS.newest_sessions,
            stale_seconds=OPTIONS.session_stalled_seconds,
        ),
    ]


def _fill(root: Path, files: int) -> None:
    """Files of an hour ago, a second apart."""
    health = root / LAYOUT.health
    health.parent.mkdir(parents=True)
    health.write_text(json.dumps({"status": "ok", "checks": [{"name": "api", "ok": True}] * 20}))
    ack = json.dumps({"wo_id": "WO-1", "status": "done", "receipts": ["sha256:0"] * 5})
    session = "id: SESSION-1\nstate: running\nsteps:\n" + "- name: step\n  done: true\n" * 10
    now = time.time() - 3_600
    for place, ending, text in ((LAYOUT.acks, "ack.json", ack), (LAYOUT.sessions, "yaml", session)):
        folder = root / place
        folder.mkdir(parents=True)
        for number in range(files):
            file = folder / f"WO-20251127-{number:06}.{ending}"
            file.write_text(text)
            os.utime(file, (now - number, now - number))


async def _bare(root: Path) -> None:
    """The least that anybody has to do who wants to know what changed."""
    for place in (LAYOUT.acks, LAYOUT.sessions):
        with os.scandir(root / place) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)


async def _marked(sources: list[StateSource]) -> None:
    for source in sources:
        await source.etag()


async def _looked(sources: list[StateSource]) -> None:
    for source in sources:
        await source.look()


async def _bundled(root: Path, sources: list[StateSource]) -> None:
    looks = [await source.look() for source in sources]
    bundle = bundle_of(str(root), looks, limit_bytes=OPTIONS.bundle_bytes)
    assert bundle.digest
    assert bundle_json(bundle)


async def _timed(work: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def _in_turn(ways: dict[str, Callable[[], Awaitable[None]]]) -> dict[str, float]:
    """Milliseconds of each, one after the other, again and again. The first round only warms up."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, way in ways.items():
            milliseconds = await _timed(way)
            if number:
                taken[name].append(milliseconds)
    return {name: median(item) for name, item in taken.items()}


def _in_new_processes(root: Path) -> dict[str, float]:
    """As where every tick is a process of its own. What it takes to start one is not counted."""
    taken: dict[str, list[float]] = {"bare": [], "mark": []}
    for _ in range(NEW_PROCESSES):
        for way, times in taken.items():
            words = (sys.executable, "-m", "benchmarks.sensing", str(root), way)
            times.append(float(subprocess.check_output(words)))
    return {name: median(item) for name, item in taken.items()}


async def _once(root: Path, way: str) -> float:
    sources = sources_of(root)
    return await _timed(lambda: _bare(root) if way == "bare" else _marked(sources))


def _figure(name: str, ours: float, bare: float, most: float | None = None) -> Figure:
    return Figure(name, ours, "ms", bare, "scandir+stat", most_ratio=most)


if __name__ == "__main__":
    print(asyncio.run(_once(Path(sys.argv[1]), sys.argv[2])))
