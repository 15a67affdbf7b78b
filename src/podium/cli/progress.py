"""Progress of long work: live on a terminal, plain lines in a pipe, or one JSON object per line."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from podium.app.run_list import INTERRUPTED, RunListing
from podium.cli.context import CliContext
from podium.cli.screen import error_record, redirect_to_null
from podium.core.errors import Interrupted, PodiumError
from podium.core.model import Json
from podium.core.work import Run
from podium.ports import EventQuery, Store
from podium.render.text import safe_line, safe_text

if TYPE_CHECKING:
    from rich.text import Text


class Progress:
    """Prints lines as they come; on a terminal with a status line below."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._open = ExitStack()
        self._doing = _Ticking("working", None)

    @property
    def width(self) -> int:
        """Width of a line; 0 when nothing is cut."""
        return max(20, shutil.get_terminal_size().columns) if self._live else 0

    def __enter__(self) -> Progress:
        if self._live:
            # Rich is only worth its start-up time where somebody sees it.
            from rich.console import Console

            console = Console(file=self._stream, markup=False, highlight=False)
            self._status = self._open.enter_context(console.status("working"))
            self._print = console.print
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def line(self, text: str) -> None:
        """Show a line at once."""
        if self._live:
            self._print(safe_text(text), soft_wrap=True)
            return
        try:
            self._stream.write(safe_text(text) + "\n")
            self._stream.flush()
        except OSError:
            redirect_to_null(self._stream)

    def doing(self, what: str, until: datetime | None = None) -> None:
        """Show on the status line what is in progress, with elapsed time, or with the time left `until`."""
        self._doing = _Ticking(safe_line(what, self.width // 2), until, self._doing.cost)
        if self._live:
            self._status.update(self._doing)

    def cost(self, text: str) -> None:
        """Show the cost so far on the status line."""
        changed, self._doing.cost = text != self._doing.cost, text
        if self._live and changed:
            self._status.update(self._doing)


class _Ticking:
    """Status text with a time computed at each redraw."""

    def __init__(self, what: str, until: datetime | None, cost: str = "") -> None:
        self._what = what
        self._until = until
        self._since = time.monotonic()
        self.cost = cost

    def __rich__(self) -> Text:
        from rich.text import Text

        cost = f"; {self.cost}" if self.cost else ""
        if self._until is None:
            return Text(f"{self._what} {_clock(time.monotonic() - self._since)}{cost}")
        left = (self._until - datetime.now(UTC)).total_seconds()
        return Text(f"{self._what}, continues in {_clock(max(0.0, left))}{cost}")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class LinesView:
    """Base of run views that print lines."""

    def __init__(self, cli: CliContext, run: Run) -> None:
        self._options = cli.options
        self._screen = cli.screen
        self._run = run

    async def begin(self, store: Store) -> int:
        """Start at the beginning of a new run; a resumed run from where this process took it."""
        if self._screen.json:
            self._screen.record(launch_record(self._run))
        if self._run.fence == 1:
            return 0
        taken = EventQuery(run_id=self._run.id, types=("run_started",))
        starts = await store.read(lambda view: view.events(taken))
        return starts[-1].seq - 1 if starts else 0

    def break_off(self, error: PodiumError) -> None:
        if not self._screen.json:
            return
        left = INTERRUPTED if isinstance(error, Interrupted) else "unknown"
        error_part = {"error": error_record(error, str(error), error.exit_code)}
        record = result_record(RunListing(run=self._run, hosted=False), error.exit_code)
        self._screen.record({**record, "status": left, **error_part})
        # That was the last line; the edge has only people left to tell.
        self._options.json = False


def launch_record(run: Run, **more: Json) -> dict[str, Json]:
    """Build the first JSON line: the run that started or resumed."""
    job = run.input if isinstance(run.input, dict) else {}
    return {
        "type": "launch",
        "run": run.id,
        "task": run.task,
        "mode": job.get("mode", ""),
        "base": job.get("base", ""),
        "agent": job.get("agent", ""),
        "resumed": run.fence > 1,
        **more,
    }


def result_record(status: RunListing, exit_code: int) -> dict[str, Json]:
    """Build the last JSON line."""
    return {
        "type": "result",
        "run": status.record(),
        "status": status.shown_status,
        "exit_code": exit_code,
        "result": status.run.result,
    }
