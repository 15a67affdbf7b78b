"""Command `podium top`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.workload import WorkloadSnapshot, WorkWatch
from podium.cli.app import command_app
from podium.cli.commands.workers import queue_specs
from podium.cli.context import Door
from podium.cli.screen import Screen, is_terminal
from podium.core.errors import Interrupted, Passing
from podium.ports import Store
from podium.render.text import local_time
from podium.render.work_tables import problem_lines, queue_rows, run_rows, summary, worker_rows

PATIENCE_SECONDS = 2.0
"""How long a look may take before the person is told that nothing new comes."""


class Eye:
    """The newest that was seen, and why it is not newer."""

    def __init__(
        self,
        watch: WorkWatch,
        seen: WorkloadSnapshot,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._watch = watch
        self._patience_seconds = patience_seconds
        self._looking: asyncio.Task[WorkloadSnapshot] | None = None
        self.seen = seen
        self.away = ""

    async def look(self, *, unless: asyncio.Event) -> None:
        """Look, or go on looking when the last look has not ended. Gives up early when `unless` is set.

        A store waits by itself for a database that is away, for much longer than a person would.
        """
        self._looking = self._looking or asyncio.create_task(self._watch.look())
        leaving = asyncio.create_task(unless.wait())
        await asyncio.wait(
            {self._looking, leaving},
            timeout=self._patience_seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )
        leaving.cancel()
        if not self._looking.done():
            self.away = f"the database does not answer; this is from {local_time(self.seen.at)}"
            return
        looked, self._looking = self._looking, None
        try:
            self.seen, self.away = looked.result(), ""
        except Passing as error:
            self.away = f"{error}; this is from {local_time(self.seen.at)}"

    def close(self) -> None:
        """Give up on a look that has not ended."""
        if self._looking is not None:
            self._looking.cancel()


app = command_app()

FRAME_SECONDS = 0.25
"""The least time between two frames on a terminal."""
LINES_SECONDS = 1.0
"""The same where lines are printed."""
LOOK_SECONDS = 1.0
"""How long nothing may be looked at: a worker that was killed tells nobody."""


@app.command()
def top(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and leave.")] = False,
) -> None:
    """Watch workers, queues and running runs live. q ends it, and so does Ctrl-C.

    IN STEP is how long the run's current step has taken, COST what the run has cost so far. Where
    the output is piped, plain lines are printed whenever something changed; --json is one object.

    \b
    Example:
      podium top
      podium top --once
    """
    door = Door(context.obj, lenient=True)
    if not door.has_state:
        nothing = WorkloadSnapshot(at=datetime.now(UTC))
        words = "nothing was recorded here yet; `podium run` begins"
        door.screen.answer(_record(nothing), lambda: door.screen.aside(words))
        return
    with suppress(Interrupted):
        door.run(lambda podium: _watch(door, podium, once=once))


async def _watch(door: Door, podium: Podium, *, once: bool) -> None:
    store = await podium.store()
    watch = WorkWatch(store, podium.engine, queue_specs(door))
    if door.screen.json:
        door.screen.record(_record(await watch.look()))
    elif once:
        _print(door.screen, await watch.look())
    elif is_terminal():
        await _draw(store, watch)
    else:
        await _print_on(door.screen, store, watch)


async def _draw(store: Store, watch: WorkWatch) -> None:
    from podium.cli.top_screen import TopScreen, listen_for_quit

    async with _woken(store) as woken:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def end() -> None:
            ended.set()
            woken.set()

        give_back = listen_for_quit(end, loop.add_reader)
        try:
            with TopScreen() as screen, closing(Eye(watch, await watch.look())) as eye:
                screen.show(eye.seen)
                while not await _within(ended, FRAME_SECONDS):
                    await _within(woken, LOOK_SECONDS)
                    woken.clear()
                    await eye.look(unless=ended)
                    screen.show(eye.seen, eye.away)
        finally:
            give_back()


async def _print_on(screen: Screen, store: Store, watch: WorkWatch) -> None:
    """Lines whenever what matters has changed, until nobody reads them any more."""
    before: Hashable = None
    async with _woken(store) as woken:
        eye = Eye(watch, await watch.look())
        while not screen.reader_gone:
            if (now := (eye.away, _what_matters(eye.seen))) != before:
                before = now
                _print(screen, eye.seen, eye.away)
            await asyncio.sleep(LINES_SECONDS)
            await _within(woken, LOOK_SECONDS)
            woken.clear()
            await eye.look(unless=asyncio.Event())


@asynccontextmanager
async def _woken(store: Store) -> AsyncIterator[asyncio.Event]:
    """Set whenever something was committed."""
    woken = asyncio.Event()

    async def listen() -> None:
        async for _ in store.changes():
            woken.set()

    listening = asyncio.create_task(listen())
    try:
        yield woken
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether it was set within that time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _print(screen: Screen, seen: WorkloadSnapshot, away: str = "") -> None:
    screen.line(f"{local_time(seen.at)}  {summary(seen)}")
    for line in [away] if away else problem_lines(seen):
        screen.line(line)
    tables = (
        worker_rows(seen.workers, seen.at),
        queue_rows(seen.queues, seen.at),
        run_rows(seen.runs, seen.at),
    )
    for table in tables:
        if table.rows:
            screen.line()
            screen.table(*table)
    screen.line()


def _what_matters(seen: WorkloadSnapshot) -> Hashable:
    """A frame without what changes by itself: times, load, cost."""
    return (
        tuple((worker.id, worker.alive) for worker in seen.workers),
        tuple((each.tally, each.served_by) for each in seen.queues),
        tuple((run.run_id, run.step, run.hosted) for run in seen.runs),
    )


def _record(seen: WorkloadSnapshot) -> dict[str, object]:
    queues = [each.record() for each in seen.queues]
    return {**seen.model_dump(mode="json", exclude={"queues"}), "queues": queues}
