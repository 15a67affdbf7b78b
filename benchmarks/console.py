"""The console over a long past: how soon pages and answers come, and what it costs to follow live."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx

from benchmarks.browser_latency import shown_live
from benchmarks.figures import Figure, median, percentile
from benchmarks.time_meter import resident_bytes
from podium.app.app import open_podium
from podium.config.configuration import load_configuration
from podium.core.events import NoteTaken, StepCompleted, StepStarted
from podium.core.work import Run, RunStatus, StepRecord, StepStatus
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Store, StoreView, Transaction
from podium.store import SqlStore
from podium.testing import retry_until
from podium.web.access.tokens import ConsoleRole
from podium.web.app import build_app
from podium.web.context import WebContext
from podium.web.live.hub import Hub
from podium.web.server import served
from podium.web.settings import ConsoleSettings

T = TypeVar("T")
PAST_RUNS = 100_000
EVENTS = 20_000
WARMING = 3
"""The first ones read templates and models."""
ROUNDS = 60
FOLLOWERS = 200
STREAMS = 1000
COMMITS = 100
SHOWN = 500
"""The newest runs, of which pages show some."""
MAX_MS = 100.0
"""For the slowest of twenty answers, by whoever asks on the same machine."""


@dataclass
class Stage:
    """A console over a long past."""

    client: httpx.AsyncClient
    context: WebContext
    url: str
    token: str
    long_run: str
    live_run: str


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        async with _console(Path(folder)) as stage:
            return [
                *[await _answered(stage, name, path) for name, path in _paths(stage)],
                await _live_messages(stage, Path(folder)),
                *await _shown_live(stage, Path(folder)),
                await _followed(stage),
                await _streams(stage),
            ]


def _paths(stage: Stage) -> Iterator[tuple[str, str]]:
    api, run = "/api/v1/runs", stage.long_run
    yield "page of runs, 100,000 runs, p95", "/runs"
    yield "the same, failed ones, p95", "/runs?status=failed"
    yield "API: runs, 100,000 runs, p95", api
    yield "API: failed runs, p95", f"{api}?status=failed"
    yield "API: runs from the middle, p95", f"{api}?before={run}"
    yield "page of a run, 20,000 events, p95", f"/runs/{run}"
    yield "API: that run, p95", f"{api}/{run}"
    yield "API: its last events, p95", f"{api}/{run}/events?after={EVENTS - 100}"
    yield "API: its steps from the middle, p95", f"{api}/{run}/steps?after={EVENTS // 4}"
    yield "API: a word that no task has, p95", f"{api}?text=hapaxlegomenon"
    yield "page of runs, that word, p95", "/runs?text=hapaxlegomenon"
    yield "inbox beside 100,000 runs, p95", "/"
    yield "API: health, 100,000 runs, p95", "/api/v1/health"


async def _answered(stage: Stage, name: str, path: str) -> Figure:
    taken = []
    for _ in range(WARMING):
        await stage.client.get(path)
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        answer = await stage.client.get(path)
        taken.append((time.perf_counter() - begun) * 1000)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:300]}"
    return Figure(name, percentile(taken, 0.95), "ms", most=MAX_MS)


async def _live_messages(stage: Stage, folder: Path) -> Figure:
    """From a commit through another connection, as of another process, to who follows by HTTP."""
    state = folder / "project" / ".podium"
    other = await SqlStore.open(state, clock=SystemClock(), ids=SystemIds())
    path, taken = f"/api/v1/runs/{stage.live_run}/events/stream", []
    try:
        async with stage.client.stream("GET", path) as answer:
            lines = answer.aiter_lines()
            await _until(lines, ": open")
            for number in range(ROUNDS):
                mark = f"mark {number}"
                await other.write(lambda tx, mark=mark: tx.append(stage.live_run, _note(mark)))  # type: ignore[misc]
                begun = time.perf_counter()
                await _until(lines, f'"{mark}"')
                taken.append((time.perf_counter() - begun) * 1000)
                await asyncio.sleep(0.02)
    finally:
        await other.close()
    return Figure("event to who follows, p50", median(taken), "ms", most=150.0)


async def _shown_live(stage: Stage, folder: Path) -> list[Figure]:
    return await shown_live(folder / "project", _environ(folder), stage.token, stage.live_run)


async def _until(lines: AsyncIterator[str], words: str) -> None:
    async for line in lines:
        if words in line:
            return


class _Counted:
    """A store that counts how often it is read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0

    async def read(self, work: Callable[[StoreView], T]) -> T:
        self.reads += 1
        return await self._store.read(work)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


async def _followed(stage: Stage) -> Figure:
    alone, together = await _reads(stage, 1), await _reads(stage, FOLLOWERS)
    name = f"journal reads of {FOLLOWERS} followers of one run"
    return Figure(name, together, "", alone, "reads of one", most_ratio=1.5)


async def _reads(stage: Stage, followers: int) -> float:
    store = await stage.context.store()
    counted = _Counted(store)

    async def given() -> Store:
        return counted  # type: ignore[return-value]  # what it does not count it hands on

    hub, output = Hub(given), [0] * followers

    async def follow(number: int) -> None:
        async for _ in hub.follow(stage.long_run, after=EVENTS - 10):
            output[number] += 1

    following = [asyncio.create_task(follow(number)) for number in range(followers)]
    before = await store.read(lambda view: view.last_seq(stage.long_run))
    for number in range(COMMITS):
        await _all_messages(output, before - EVENTS + 10 + number)
        await store.write(lambda tx: tx.append(stage.long_run, _note("more")))
    await _all_messages(output, before - EVENTS + 10 + COMMITS)
    await hub.close()
    await asyncio.gather(*following)
    return counted.reads


async def _all_messages(messages: list[int], many: int) -> None:
    await retry_until(lambda: min(messages) >= many)


async def _streams(stage: Stage) -> Figure:
    """Both ends are in this process; those who follow are bare sockets."""
    before = resident_bytes()
    host, port = stage.url.removeprefix("http://").split(":")
    words = (
        f"GET /api/v1/runs/{stage.live_run}/events/stream?after={10**9} HTTP/1.1\r\n"
        f"Host: {host}:{port}\r\nAuthorization: Bearer {stage.token}\r\n\r\n"
    )
    opened = []
    for _ in range(STREAMS):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(words.encode())
        opened.append((reader, writer))
    for reader, _ in opened:
        await reader.readuntil(b": open")
    grown = (resident_bytes() - before) / 1_000_000
    for _, writer in opened:
        writer.close()
    return Figure(f"memory of {STREAMS} open streams", grown, "MB", most=150.0)


@asynccontextmanager
async def _console(folder: Path) -> AsyncIterator[Stage]:
    project = folder / "project"
    project.mkdir()
    (project / "podium.yaml").write_text("{}\n")
    environ = _environ(folder)
    settings = ConsoleSettings(
        port=0,
        requests_per_minute=1_000_000,
        streams_per_person=2 * STREAMS,
        most_streams=2 * STREAMS,
    )
    configuration = load_configuration(environ, project=project)
    async with open_podium(configuration, environ) as podium:
        store = await podium.store()
        long_run, live_run = await _fill(store)
        context = WebContext(podium, settings)
        roles = frozenset(ConsoleRole)
        token, _ = context.tokens.make("bench", roles, podium.clock.now())
        async with served(build_app(context), settings) as url:
            headers = {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as client:
                yield Stage(client, context, url, token, long_run, live_run)


def _environ(folder: Path) -> dict[str, str]:
    home = str(folder / "home")
    return {"PATH": os.environ["PATH"], "HOME": home, "PODIUM_HOME": home}


async def _fill(store: Store) -> tuple[str, str]:
    """A past, and the ids of a run with many events in the middle of it, and of one that goes on."""
    clock, ids = SystemClock(), SystemIds()
    names = [ids.new("run") for _ in range(PAST_RUNS)]
    for start in range(0, PAST_RUNS, 2000):

        def add(tx: Transaction, start: int = start) -> None:
            for number, name in enumerate(names[start : start + 2000], start):
                _add(tx, name, number, clock)

        await store.write(add)
    long_run, live_run = names[PAST_RUNS // 2], ids.new("run")
    for start in range(0, EVENTS // 2, 2000):
        await store.write(lambda tx, start=start: _lengthen(tx, long_run, start, clock))  # type: ignore[misc]
    now = clock.now()
    run = Run(id=live_run, flow="bench", task="live", status=RunStatus.RUNNING, created_at=now)
    await store.write(lambda tx: tx.add_run(run))
    return long_run, live_run


def _add(tx: Transaction, run_id: str, number: int, clock: SystemClock) -> None:
    now = clock.now()
    is_long = number == PAST_RUNS // 2
    ended = RunStatus.FAILED if number % 50 == 0 else RunStatus.SUCCEEDED
    status = RunStatus.RUNNING if is_long else ended
    tx.add_run(
        Run(
            id=run_id,
            flow="bench" if number % 3 else "pipeline",
            task=f"task {number}: make the thing do what it says",
            status=status,
            created_at=now,
            finished_at=None if is_long else now,
        )
    )
    if is_long or number % 50 == 0 or number >= PAST_RUNS - SHOWN:
        # What stands on pages has events; each of the others would only be a file more to write.
        for step in range(10):
            tx.append(run_id, StepStarted(step=f"work#{step}"))
            tx.append(run_id, StepCompleted(step=f"work#{step}"))


def _lengthen(tx: Transaction, run_id: str, start: int, clock: SystemClock) -> None:
    now = clock.now()
    for number in range(start, min(start + 2000, EVENTS // 2)):
        step = f"work#{number}"
        tx.append(run_id, StepStarted(step=step))
        tx.append(run_id, StepCompleted(step=step))
        tx.save_step(
            StepRecord(
                run_id=run_id,
                key=step,
                status=StepStatus.COMPLETED,
                ordinal=number,
                started_at=now,
                finished_at=now,
            )
        )


def _note(text: str) -> NoteTaken:
    return NoteTaken(text=text)
