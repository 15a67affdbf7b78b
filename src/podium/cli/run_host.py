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
from podium.cli.context import CliContext
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
"""Takes the run into this process. An error before it opens the store leaves no record."""

_EXIT_CODES = {
    RunStatus.SUCCEEDED: 0,
    RunStatus.WAITING: 3,
    RunStatus.NEEDS_HUMAN: 3,
}


class RunView(Protocol):
    """View of a run: its start, its events and its end."""

    async def begin(self, store: Store) -> int:
        """Called once. Gives the number of the event behind which all are to be shown."""
        ...

    def event(self, event: Event, progress: Progress) -> None: ...

    async def look_back(self, podium: Podium, run: Run) -> None:
        """Read what the end is told with, while Podium is still open."""
        ...

    def end(self, status: RunListing, exit_code: int) -> None: ...

    def break_off(self, error: PodiumError) -> None:
        """The run was left before it came to rest; who called is told by the edge."""
        ...


def host(cli: CliContext, begin: Begin, *, wait: bool = False) -> None:
    """Host a run until it ends or waits, show its progress, and exit with its code."""
    view: RunView | None = None
    begun: Run | None = None
    full: StoreFull | None = None

    async def work(podium: Podium) -> Run:
        nonlocal view, begun, full
        run = begun = await begin(podium)
        _set_notes(cli, run)
        view = _view_of(cli, run)
        store, engine = await podium.store(), await podium.hosting_engine()
        async with _live_view(cli, store, run, view):
            run = await see_through(engine, run, wait=wait)
        full = engine.disk_full_error()
        await view.look_back(podium, run)
        return run

    try:
        run = cli.run(work)
    except PodiumError as error:
        if view is not None:
            view.break_off(error)
        if isinstance(error, StoreFull) and begun is not None:
            raise _resumable(error, begun) from error
        raise
    # It may be stored as running here, but nobody hosts it: it was let go of.
    status = RunListing(run=run, hosted=False)
    code = exit_code_of(run)
    if view is not None:
        view.end(status, code)
    if full is not None and status.interrupted:
        cli.screen.stderr_line(f"podium: {_resumable(full, run)}")
    raise typer.Exit(code)


def _resumable(full: StoreFull, run: Run) -> StoreFull:
    """Return the error with the command that resumes the run."""
    folder = str(Path(full.path).parent)
    remedy = f"free space in {folder!r} and run `podium resume {run.id}`"
    return StoreFull(full.path, "the disk is full; the run stays at its checkpoint", remedy)


def exit_code_of(run: Run) -> int:
    """0 only when the goal was met: it is, once the pull request is open and followed."""
    if run.follows_pull_request:
        return 0
    stopped = run.status in (RunStatus.FAILED, RunStatus.NEEDS_HUMAN)
    if stopped and run.failure is not None and run.failure.exit_code > 1:
        return run.failure.exit_code
    return _EXIT_CODES.get(run.status, 1)


def _view_of(cli: CliContext, run: Run) -> RunView:
    job = job_of_flow(run.flow)
    view: Callable[[CliContext, Run], RunView] = (
        load(job.run_view) if job is not None and job.run_view else PlainView
    )
    return view(cli, run)


def _set_notes(cli: CliContext, run: Run) -> None:
    cli.options.ending_note = (
        f"stopping; run {short_id(run.id)} stays at its checkpoint (Ctrl-C again exits at once)"
    )
    cli.options.parting_note = (
        f"run {run.id} stays at its checkpoint; continue with `podium resume {run.id}`, "
        f"or end it with `podium cancel {run.id}`"
    )


@asynccontextmanager
async def _live_view(cli: CliContext, store: Store, run: Run, view: RunView) -> AsyncIterator[None]:
    """Show events live while open; on exit, all of them have been shown.

    A terminal that stands still, or a reader that is slow, does not hold up the run.
    """
    after_seq = await view.begin(store)
    meter = await _meter_at(store, run.id, after_seq)

    def show(event: Event) -> None:
        meter.take(event.body)
        view.event(event, progress)
        progress.cost(meter_text(meter))

    with Progress(sys.stderr) as progress:
        query = EventQuery(run_id=run.id, after_seq=after_seq)
        listening = ListenerThread(store, query, show, name="the live view")
        try:
            yield
        finally:
            # A waiting run's events never end, and those of an ended one may lag behind.
            await listening.close()
    for problem in listening.problems:
        cli.screen.stderr_line(f"podium: {problem}; see all with `podium logs {short_id(run.id)}`")
    if isinstance(listening.error, AnswerLost):
        raise listening.error


async def _meter_at(store: Store, run_id: str, seq: int) -> CostMeter:
    """Return the run's cost up to that event."""
    query = EventQuery(run_id=run_id, types=METERED_TYPES, limit=100_000)
    events = await store.read(lambda view: view.events(query)) if seq else []
    return CostMeter.of(event.body for event in events if event.seq <= seq)


class PlainView:
    """Prints every event on a line of stderr, and a record of the run at the end."""

    def __init__(self, cli: CliContext, run: Run) -> None:
        self._screen = cli.screen
        self._run_id = run.id

    async def begin(self, store: Store) -> int:
        return await store.read(lambda view: view.last_seq(self._run_id))

    def event(self, event: Event, progress: Progress) -> None:
        progress.line(event_line(event, progress.width))

    async def look_back(self, podium: Podium, run: Run) -> None:
        return

    def end(self, status: RunListing, exit_code: int) -> None:
        self._screen.answer({"run": status.record()}, lambda: self._print(status))

    def break_off(self, error: PodiumError) -> None:
        return

    def _print(self, status: RunListing) -> None:
        run = status.run
        self._screen.line(f"run {run.id} {status.shown_status}")
        for line in next_steps(status):
            self._screen.stderr_line(line)


def next_steps(status: RunListing) -> list[str]:
    """Return messages on why a run stopped, and the next commands."""
    run, lines = status.run, []
    if status.interrupted:
        when = "" if run.not_before is None else f"; retry after {local_time(run.not_before)}"
        lines.append(
            f"interrupted at a checkpoint{when}: continue with `podium resume {run.id}`, "
            f"see why with `podium show {run.id}`"
        )
    if run.failure is not None:
        lines.append(f"podium: {run.failure.message}")
    if run.follows_pull_request:
        lines.append(
            f"following the pull request; a running console or worker continues the run, as does "
            f"`podium resume {run.id} --wait`"
        )
    elif run.status is RunStatus.WAITING:
        lines.append(
            f"waiting for {run.waiting_for}; see `podium approvals`. A running console or "
            f"worker continues it after the answer, otherwise `podium resume {run.id}` does"
        )
    if run.status is RunStatus.FAILED:
        short = short_id(run.id)
        lines.append(
            f"see details with `podium show {short}`; retry the step with `podium retry {short}`"
        )
    if run.status is RunStatus.NEEDS_HUMAN:
        lines.append(f"needs a person; see why with `podium show {run.id}`")
    return lines
