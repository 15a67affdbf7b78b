"""The live screen of `podium top`: it takes the terminal for itself, and gives it back as it was."""

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
"""Columns that give way when the terminal is narrow."""
MAX_TROUBLES = 3
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

    def show(self, seen: WorkloadSnapshot, away: str = "") -> None:
        """Draw a frame. `away` says why it is an old one."""
        self._live.update(self._frame(seen, away), refresh=True)

    def _frame(self, seen: WorkloadSnapshot, away: str) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        width = max(20, self._console.size.width)
        told = [
            line
            for each in ([away] if away else problem_lines(seen)[:MAX_TROUBLES])
            for line in wrap(safe_line(each), width, break_on_hyphens=False)
        ]
        room = max(3, self._console.size.height - _BARE_LINES - len(told))
        workers, queues, runs = (
            worker_rows(seen.workers, seen.at),
            queue_rows(seen.queues, seen.at),
            run_rows(seen.runs, seen.at),
        )
        share = max(1, room // 4)
        rest = room - min(share, len(workers.rows)) - min(share, len(queues.rows))
        head = f"podium top {seen.at.astimezone():%H:%M:%S}  {summary(seen)}"
        return Group(
            _line(head, "bold"),
            *(_line(each, "yellow") for each in told),
            Text(""),
            *(self._drawn(workers, share), Text("")),
            *(self._drawn(queues, share), Text("")),
            self._drawn(runs, max(1, rest)),
            _line("q ends", "dim"),
        )

    def _drawn(self, rows: Rows, most: int) -> Table:
        """At most so many lines beneath the head; the last says how many are left out."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style=_style("bold"))
        for header in rows.headers:
            table.add_column(_cell(header), no_wrap=header not in FOLDING, overflow="ellipsis")
        cut = len(rows.rows) > most
        shown = rows.rows[: most - 1] if cut else rows.rows
        for row in shown:
            table.add_row(*(_cell(safe_line(cell)) for cell in row))
        if cut:
            table.add_row(_cell(f"+{len(rows.rows) - len(shown)} more"))
        return table


def listen_for_quit(quit_: Callable[[], None], listen: Callable[..., None]) -> Callable[[], None]:
    """Call `quit_` when a person presses q, and give what sets the keyboard back.

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
