"""Command `podium top`."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from datetime import UTC, datetime
from textwrap import wrap
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer

from podium.app.app import Podium
from podium.app.workload import WorkloadSnapshot, WorkWatch
from podium.cli.app import command_app
from podium.cli.commands.workers import queue_specs
from podium.cli.context import CliContext
from podium.cli.screen import Screen, is_terminal
from podium.core.errors import Interrupted, Passing
from podium.ports import Store
from podium.render.text import local_time, safe_line
from podium.render.work_tables import (
    Rows,
    problem_lines,
    queue_rows,
    run_rows,
    summary,
    worker_rows,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

PATIENCE_SECONDS = 2.0
"""Seconds a refresh may take before the screen says that the data is old."""


class LiveSnapshot:
    """Latest snapshot, and the reason when it is not current."""

    def __init__(
        self,
        watch: WorkWatch,
        snapshot: WorkloadSnapshot,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._watch = watch
        self._patience_seconds = patience_seconds
        self._looking: asyncio.Task[WorkloadSnapshot] | None = None
        self.snapshot = snapshot
        self.away = ""

    async def look(self, *, unless: asyncio.Event) -> None:
        """Refresh, or keep waiting for the last refresh. Gives up early when `unless` is set.

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
            self.away = (
                f"the database does not respond; data is from {local_time(self.snapshot.at)}"
            )
            return
        looked, self._looking = self._looking, None
        try:
            self.snapshot, self.away = looked.result(), ""
        except Passing as error:
            self.away = f"{error}; data is from {local_time(self.snapshot.at)}"

    def close(self) -> None:
        """Cancel a refresh that has not ended."""
        if self._looking is not None:
            self._looking.cancel()


app = command_app()

FRAME_SECONDS = 0.25
"""Minimum time between two frames on a terminal."""
LINES_SECONDS = 1.0
"""Minimum time between two prints of lines."""
LOOK_SECONDS = 1.0
"""Maximum time between two refreshes: a worker that is killed emits no event."""


@app.command()
def top(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit.")] = False,
) -> None:
    """Watch workers, queues and running runs live; q or Ctrl-C quits.

    IN STEP is the time in the current step, COST the cost of the run so far. When
    piped, plain lines are printed whenever something changed; --json prints one object.

    \b
    Example:
      podium top
      podium top --once
    """
    cli = CliContext(context.obj, lenient=True)
    if not cli.has_state:
        nothing = WorkloadSnapshot(at=datetime.now(UTC))
        text = "no runs yet; start one with `podium run`"
        cli.screen.answer(_record(nothing), lambda: cli.screen.stderr_line(text))
        return
    with suppress(Interrupted):
        cli.run(lambda podium: _watch(cli, podium, once=once))


async def _watch(cli: CliContext, podium: Podium, *, once: bool) -> None:
    store = await podium.store()
    watch = WorkWatch(store, podium.engine, queue_specs(cli))
    if cli.screen.json:
        cli.screen.record(_record(await watch.look()))
    elif once:
        _print(cli.screen, await watch.look())
    elif is_terminal():
        await _draw(store, watch)
    else:
        await _print_on(cli.screen, store, watch)


async def _draw(store: Store, watch: WorkWatch) -> None:
    async with _woken(store) as woken:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def end() -> None:
            ended.set()
            woken.set()

        give_back = listen_for_quit(end, loop.add_reader)
        try:
            with TopScreen() as screen, closing(LiveSnapshot(watch, await watch.look())) as eye:
                screen.show(eye.snapshot)
                while not await _within(ended, FRAME_SECONDS):
                    await _within(woken, LOOK_SECONDS)
                    woken.clear()
                    await eye.look(unless=ended)
                    screen.show(eye.snapshot, eye.away)
        finally:
            give_back()


async def _print_on(screen: Screen, store: Store, watch: WorkWatch) -> None:
    """Print lines whenever the snapshot changed, until the reader is gone."""
    before: Hashable = None
    async with _woken(store) as woken:
        eye = LiveSnapshot(watch, await watch.look())
        while not screen.reader_gone:
            if (now := (eye.away, _what_matters(eye.snapshot))) != before:
                before = now
                _print(screen, eye.snapshot, eye.away)
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
    """Wait for the event; True when it was set within that time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _print(screen: Screen, snapshot: WorkloadSnapshot, away: str = "") -> None:
    screen.line(f"{local_time(snapshot.at)}  {summary(snapshot)}")
    for line in [away] if away else problem_lines(snapshot):
        screen.line(line)
    tables = (
        worker_rows(snapshot.workers, snapshot.at),
        queue_rows(snapshot.queues, snapshot.at),
        run_rows(snapshot.runs, snapshot.at),
    )
    for table in tables:
        if table.rows:
            screen.line()
            screen.table(*table)
    screen.line()


def _what_matters(snapshot: WorkloadSnapshot) -> Hashable:
    """Return the snapshot without times, load and cost, which change by themselves."""
    return (
        tuple((worker.id, worker.alive) for worker in snapshot.workers),
        tuple((queue.tally, queue.served_by) for queue in snapshot.queues),
        tuple((run.run_id, run.step, run.hosted) for run in snapshot.runs),
    )


def _record(snapshot: WorkloadSnapshot) -> dict[str, object]:
    queues = [queue.record() for queue in snapshot.queues]
    return {**snapshot.model_dump(mode="json", exclude={"queues"}), "queues": queues}


FOLDING = frozenset({"HOST", "QUEUES", "LABELS", "QUEUE", "FLOW", "STEP", "TASK"})
"""Columns that shrink on a narrow terminal."""
MAX_PROBLEMS = 3
_BARE_LINES = 8
"""Lines that are no rows: the first and the last, three heads and what is left free between them."""


class TopScreen:
    """Draws frames while it is entered."""

    def __enter__(self) -> TopScreen:
        # Rich is only worth its start-up time where somebody sees it.
        from rich.console import Console
        from rich.live import Live

        self._open = ExitStack()
        self._console = Console(markup=False, highlight=False)
        live = Live(console=self._console, screen=True, auto_refresh=False)
        self._live = self._open.enter_context(live)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A terminal that went away needs nothing given back.
        with suppress(OSError):
            self._open.close()

    def show(self, snapshot: WorkloadSnapshot, away: str = "") -> None:
        """Draw a frame. `away` says why its data is old."""
        self._live.update(self._frame(snapshot, away), refresh=True)

    def _frame(self, snapshot: WorkloadSnapshot, away: str) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        width = max(20, self._console.size.width)
        problems = [
            line
            for problem in ([away] if away else problem_lines(snapshot)[:MAX_PROBLEMS])
            for line in wrap(safe_line(problem), width, break_on_hyphens=False)
        ]
        space = max(3, self._console.size.height - _BARE_LINES - len(problems))
        workers, queues, runs = (
            worker_rows(snapshot.workers, snapshot.at),
            queue_rows(snapshot.queues, snapshot.at),
            run_rows(snapshot.runs, snapshot.at),
        )
        share = max(1, space // 4)
        rest = space - min(share, len(workers.rows)) - min(share, len(queues.rows))
        head = f"podium top {snapshot.at.astimezone():%H:%M:%S}  {summary(snapshot)}"
        return Group(
            _line(head, "bold"),
            *(_line(line, "yellow") for line in problems),
            Text(""),
            *(self._drawn(workers, share), Text("")),
            *(self._drawn(queues, share), Text("")),
            self._drawn(runs, max(1, rest)),
            _line("q quits", "dim"),
        )

    def _drawn(self, rows: Rows, most: int) -> Table:
        """Draw at most that many rows below the header; the last says how many are omitted."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style=_style("bold"))
        for header in rows.headers:
            table.add_column(_cell(header), no_wrap=header not in FOLDING, overflow="ellipsis")
        cut = len(rows.rows) > most
        visible = rows.rows[: most - 1] if cut else rows.rows
        for row in visible:
            table.add_row(*(_cell(safe_line(cell)) for cell in row))
        if cut:
            table.add_row(_cell(f"+{len(rows.rows) - len(visible)} more"))
        return table


def listen_for_quit(quit_: Callable[[], None], listen: Callable[..., None]) -> Callable[[], None]:
    """Call `quit_` when q is pressed; return a function that restores the keyboard.

    `listen` is the event loop's `add_reader`. Without a keyboard nothing is listened to.
    """
    if not sys.stdin.isatty():
        return lambda: None
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)

    def read() -> None:
        typed = _typed(keyboard)
        if not typed or b"q" in typed.lower():
            quit_()

    listen(keyboard, read)
    return lambda: termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _typed(keyboard: int) -> bytes:
    try:
        return os.read(keyboard, 64)
    except OSError:
        return b""  # the terminal went away


def _line(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(safe_line(text), no_wrap=True, overflow="ellipsis", style=_style(style))


def _cell(text: str) -> Text:
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis")


def _style(style: str) -> str:
    return "" if os.environ.get("NO_COLOR") else style
