"""Live screen of `podium top`: uses the whole terminal, and restores it on exit."""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections.abc import Callable
from contextlib import ExitStack, suppress
from textwrap import wrap
from types import TracebackType
from typing import TYPE_CHECKING

from podium.app.workload import WorkloadSnapshot
from podium.render.text import safe_line
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
