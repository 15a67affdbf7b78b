"""Hosting a run in the foreground: progress while it goes, its end as an exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import typer

from podium.cli.door import Door
from podium.cli.event_words import event_line
from podium.cli.progress import Progress
from podium.cli.screen import moment
from podium.domain.ids import short_id
from podium.domain.work import Run, RunStatus
from podium.ports import Engine, Store
from podium.usecases import Standing, follow_logs, see_through
from podium.wiring import Podium

Begin = Callable[[Store, Engine], Awaitable[Run]]
"""Takes the run into this process."""

_EXIT_CODES = {
    RunStatus.SUCCEEDED: 0,
    RunStatus.WAITING: 3,
    RunStatus.NEEDS_HUMAN: 3,
}


def host(door: Door, begin: Begin, *, wait: bool = False) -> None:
    """Host a run until it ends or waits, show how it goes, and leave with its exit code."""

    async def work(podium: Podium) -> Run:
        store, engine = await podium.store(), await podium.hosting_engine()
        run = await begin(store, engine)
        door.options.ending_words = (
            f"ending its processes; run {short_id(run.id)} stays at its checkpoint "
            "(Ctrl-C again leaves at once)"
        )
        door.options.parting_words = (
            f"run {run.id} stays at its checkpoint: `podium resume {run.id}` goes on, "
            f"`podium cancel {run.id}` ends it"
        )
        seen = await store.read(lambda view: view.last_seq(run.id))
        with Progress(sys.stderr) as progress:
            showing = asyncio.create_task(_show(store, run, seen, progress))
            try:
                return await see_through(engine, run, wait=wait)
            finally:
                await _stop(showing)

    run = door.run(work)
    # It may be stored as running here, but nobody hosts it: it was let go of.
    stands = Standing(run=run, hosted=False)
    door.screen.answer({"run": stands.record()}, lambda: _words(door, stands))
    raise typer.Exit(exit_code_of(run))


def exit_code_of(run: Run) -> int:
    """0 only when the goal was met."""
    stopped = run.status in (RunStatus.FAILED, RunStatus.NEEDS_HUMAN)
    if stopped and run.failure is not None and run.failure.exit_code > 1:
        return run.failure.exit_code
    return _EXIT_CODES.get(run.status, 1)


async def _show(store: Store, run: Run, seen: int, progress: Progress) -> None:
    async for event in follow_logs(store, run.id, follow=True, after_seq=seen):
        progress.line(event_line(event, progress.width))


async def _stop(showing: asyncio.Task[None]) -> None:
    # The last events of an ended run are worth a moment; those of a waiting one never end.
    await asyncio.wait((showing,), timeout=0.2)
    showing.cancel()
    with suppress(asyncio.CancelledError):
        await showing


def _words(door: Door, stands: Standing) -> None:
    run = stands.run
    door.screen.line(f"run {run.id} {stands.shown_status}")
    if stands.interrupted:
        when = (
            ""
            if run.not_before is None
            else f", worth trying again from {moment(run.not_before)} on"
        )
        door.screen.aside(
            f"it was let go of at its checkpoint{when}: `podium resume {run.id}` goes on, "
            f"`podium show {run.id}` says why"
        )
    if run.failure is not None:
        door.screen.aside(f"podium: {run.failure.kind}: {run.failure.message}")
    if run.status is RunStatus.WAITING:
        door.screen.aside(
            f"it waits for {run.waiting_for}; `podium approvals` shows what to answer, "
            f"then `podium resume {run.id}` goes on"
        )
    if run.status is RunStatus.NEEDS_HUMAN:
        door.screen.aside(f"it needs a person; `podium show {run.id}` says why")
