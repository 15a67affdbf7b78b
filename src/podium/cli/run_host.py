"""Host of a run in the foreground: progress while it runs, its outcome as an exit code."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import typer

from podium.app.app import Podium
from podium.app.run_control import see_through
from podium.app.run_list import RunListing
from podium.cli.context import Door
from podium.cli.progress import Progress
from podium.cli.screen import AnswerLost
from podium.core.errors import PodiumError, StoreFull
from podium.core.events import Event
from podium.core.ids import short_id
from podium.core.job import job_of_flow, load
from podium.core.run_cost import METERED_TYPES, CostMeter
from podium.core.work import Run, RunStatus
from podium.ports import EventQuery, Store
from podium.render.event import event_line, meter_text
from podium.render.text import local_time
from podium.telemetry.event_feed import ListenerThread

Begin = Callable[[Podium], Awaitable[Run]]
"""Takes the run into this process. What it raises before it opens the store leaves no trace."""

_EXIT_CODES = {
    RunStatus.SUCCEEDED: 0,
    RunStatus.WAITING: 3,
    RunStatus.NEEDS_HUMAN: 3,
}


class Telling(Protocol):
    """How a run is shown: its beginning, its events and its end."""

    async def begin(self, store: Store) -> int:
        """Called once. Gives the number of the event behind which all are to be shown."""
        ...

    def event(self, event: Event, progress: Progress) -> None: ...

    async def look_back(self, podium: Podium, run: Run) -> None:
        """Read what the end is told with, while Podium is still open."""
        ...

    def end(self, stands: RunListing, exit_code: int) -> None: ...

    def break_off(self, error: PodiumError) -> None:
        """The run was left before it came to rest; who called is told by the edge."""
        ...


def host(door: Door, begin: Begin, *, wait: bool = False) -> None:
    """Host a run until it ends or waits, show how it goes, and leave with its exit code."""
    telling: Telling | None = None
    begun: Run | None = None
    full: StoreFull | None = None

    async def work(podium: Podium) -> Run:
        nonlocal telling, begun, full
        run = begun = await begin(podium)
        _say_how_to_go_on(door, run)
        telling = _telling_of(door, run)
        store, engine = await podium.store(), await podium.hosting_engine()
        async with _shown(door, store, run, telling):
            run = await see_through(engine, run, wait=wait)
        full = engine.disk_full_error()
        await telling.look_back(podium, run)
        return run

    try:
        run = door.run(work)
    except PodiumError as error:
        if telling is not None:
            telling.break_off(error)
        if isinstance(error, StoreFull) and begun is not None:
            raise _resumable(error, begun) from error
        raise
    # It may be stored as running here, but nobody hosts it: it was let go of.
    stands = RunListing(run=run, hosted=False)
    code = exit_code_of(run)
    if telling is not None:
        telling.end(stands, code)
    if full is not None and stands.interrupted:
        door.screen.aside(f"podium: {_resumable(full, run)}")
    raise typer.Exit(code)


def _resumable(full: StoreFull, run: Run) -> StoreFull:
    """The same, with what to do once there is room."""
    folder = str(Path(full.path).parent)
    remedy = f"free space in {folder!r} and run `podium resume {run.id}`"
    return StoreFull(full.path, "the disk is full; the run stays at its checkpoint", remedy)


def exit_code_of(run: Run) -> int:
    """0 only when the goal was met."""
    stopped = run.status in (RunStatus.FAILED, RunStatus.NEEDS_HUMAN)
    if stopped and run.failure is not None and run.failure.exit_code > 1:
        return run.failure.exit_code
    return _EXIT_CODES.get(run.status, 1)


def _telling_of(door: Door, run: Run) -> Telling:
    job = job_of_flow(run.flow)
    view: Callable[[Door, Run], Telling] = (
        load(job.run_view) if job is not None and job.run_view else PlainTelling
    )
    return view(door, run)


def _say_how_to_go_on(door: Door, run: Run) -> None:
    door.options.ending_words = (
        f"ending its processes; run {short_id(run.id)} stays at its checkpoint "
        "(Ctrl-C again leaves at once)"
    )
    door.options.parting_words = (
        f"run {run.id} stays at its checkpoint: `podium resume {run.id}` goes on, "
        f"`podium cancel {run.id}` ends it"
    )


@asynccontextmanager
async def _shown(door: Door, store: Store, run: Run, telling: Telling) -> AsyncIterator[None]:
    """While open, events are shown as they come; at its end all that are there have been.

    A terminal that stands still, or a reader that is slow, does not hold up the run.
    """
    seen = await telling.begin(store)
    meter = await _meter_at(store, run.id, seen)

    def show(event: Event) -> None:
        meter.take(event.body)
        telling.event(event, progress)
        progress.cost(meter_text(meter))

    with Progress(sys.stderr) as progress:
        query = EventQuery(run_id=run.id, after_seq=seen)
        listening = ListenerThread(store, query, show, name="the live view")
        try:
            yield
        finally:
            # A waiting run's events never end, and those of an ended one may lag behind.
            await listening.close()
    for fault in listening.problems:
        door.screen.aside(f"podium: {fault}; `podium logs {short_id(run.id)}` shows all")
    if isinstance(listening.error, AnswerLost):
        raise listening.error


async def _meter_at(store: Store, run_id: str, seq: int) -> CostMeter:
    """What the run had cost when that event was the last."""
    query = EventQuery(run_id=run_id, types=METERED_TYPES, limit=100_000)
    events = await store.read(lambda view: view.events(query)) if seq else []
    return CostMeter.of(event.body for event in events if event.seq <= seq)


class PlainTelling:
    """Every event on a line of stderr, and a record of the run at the end."""

    def __init__(self, door: Door, run: Run) -> None:
        self._screen = door.screen
        self._run_id = run.id

    async def begin(self, store: Store) -> int:
        return await store.read(lambda view: view.last_seq(self._run_id))

    def event(self, event: Event, progress: Progress) -> None:
        progress.line(event_line(event, progress.width))

    async def look_back(self, podium: Podium, run: Run) -> None:
        return

    def end(self, stands: RunListing, exit_code: int) -> None:
        self._screen.answer({"run": stands.record()}, lambda: self._words(stands))

    def break_off(self, error: PodiumError) -> None:
        return

    def _words(self, stands: RunListing) -> None:
        run = stands.run
        self._screen.line(f"run {run.id} {stands.shown_status}")
        for words in next_words(stands):
            self._screen.aside(words)


def next_words(stands: RunListing) -> list[str]:
    """Why a run stopped short, and what a person can do now."""
    run, said = stands.run, []
    if stands.interrupted:
        when = (
            ""
            if run.not_before is None
            else f", worth trying again from {local_time(run.not_before)} on"
        )
        said.append(
            f"it was let go of at its checkpoint{when}: `podium resume {run.id}` goes on, "
            f"`podium show {run.id}` says why"
        )
    if run.failure is not None:
        said.append(f"podium: {run.failure.message}")
    if run.status is RunStatus.WAITING:
        said.append(
            f"it waits for {run.waiting_for}; `podium approvals` shows what to answer. A console or "
            f"worker that runs then continues it, else `podium resume {run.id}` does"
        )
    if run.status is RunStatus.FAILED:
        short = short_id(run.id)
        said.append(
            f"`podium show {short}` tells more; `podium retry {short}` tries that step again"
        )
    if run.status is RunStatus.NEEDS_HUMAN:
        said.append(f"it needs a person; `podium show {run.id}` says why")
    return said
