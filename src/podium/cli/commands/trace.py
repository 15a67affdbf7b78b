"""Command `podium trace`: a trace from a run, a file or stdin, printed while it is read."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable
from contextlib import aclosing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from podium.app.app import Podium
from podium.app.id_lookup import find_id
from podium.app.run_list import RunListing, with_host_status
from podium.app.run_report import follow_logs
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import Screen, is_terminal
from podium.core.errors import BadInput, UnknownId
from podium.core.events import Event
from podium.core.ids import short_id
from podium.core.model import Json
from podium.ports import EventQuery, Store, StoreView
from podium.render.text import escaped_json, escaped_line
from podium.render.trace import TraceTimeline, totals_line
from podium.render.trace_rows import BEGUN, Data, Folding, Row, RowFilter, Totals
from podium.store.trace import TraceWriter
from podium.store.trace_reader import TraceReader, open_trace

FIRST_PAGE = 20
LATER_PAGE = 500
"""Rows are put out together: a write for each would take longer than reading the trace."""


class TraceView:
    """Prints selected events, as text or as JSON."""

    def __init__(
        self,
        screen: Screen,
        row_filter: RowFilter,
        *,
        every_event: bool = False,
        limit: int = 0,
        at_once: bool = False,
        json_lines: bool = False,
    ) -> None:
        """`limit` is how many rows are printed; 0 for all. `at_once` is for what comes slowly; with
        `json_lines` each event is an object of its own instead of all being one."""
        self.totals = Totals()
        self.printed = 0
        self.enough = False
        """True when nothing more is to be printed."""
        self._screen = screen
        self._filter = row_filter
        self._shows_all = row_filter == RowFilter()
        self._limit = limit
        self._folding = Folding(every_event=every_event)
        self._timeline = TraceTimeline(shutil.get_terminal_size().columns if is_terminal() else 0)
        self._page: list[str] = []
        self._page_rows = 1 if at_once else FIRST_PAGE
        self._at_once = at_once
        self._json_lines = json_lines

    def read(self, reading: TraceReader, after_seq: int = 0) -> None:
        """Print a trace. Nothing is printed before the first event could be read."""
        coming = reading.events(after_seq)
        first = next(coming, None)
        if reading.first:
            self._timeline.begins(reading.first.data)
        self._begin()
        for data, line in chain([first] if first else [], coming):
            self._show(data, line)
            if self.enough:
                break
        self.flush()

    def _begin(self) -> None:
        if not self._screen.json:
            self._page.append(self._timeline.header())
        elif not self._json_lines:
            self._page.append('{"events": [')

    def watch(self) -> None:
        """Print everything at once from now on, beginning with calls in progress."""
        self._at_once = self._folding.live = True
        if not self._screen.json:
            self._show_all(row._replace(outcome=BEGUN) for row in self._folding.rest())

    def show(self, data: Data) -> None:
        """Tell one event that has just happened."""
        self._timeline.begins(data)
        self._show(data, b"")

    def end(self, **beside: Json) -> None:
        """Tell what is left over, and the totals; in JSON with these beside them."""
        if not self._screen.json:
            self._show_all(self._folding.rest())
            self._page.append(totals_line(self.totals))
        elif not self._json_lines:
            record = {**beside, "totals": self.totals.record()}
            self._page.append("], " + escaped_json(json.dumps(record, ensure_ascii=False))[1:])
        self.flush()

    def flush(self) -> None:
        if self._page:
            # Every row is safe already; to look through all of it again would take longer than reading it.
            self._screen.pass_on("\n".join([*self._page, ""]).encode(errors="backslashreplace"))
            self._page.clear()
            self.enough = self.enough or self._screen.reader_gone

    def _show(self, data: Data, line: bytes) -> None:
        self.totals.add(data)
        if not self._screen.json:
            if rows := self._folding.rows(data, len(line)):
                self._show_all(rows)
        elif self._filter.fits(data):
            text = _json_line(data, line)
            self._put(text if self._json_lines or not self.printed else f", {text}")

    def _show_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if (self._shows_all or self._filter.fits(row.data)) and not self.enough:
                self._put(self._timeline.lines(row, self.totals))

    def _put(self, text: str) -> None:
        self.printed += 1
        self.enough = self.printed == self._limit or self.enough
        self._page.append(text)
        if self._at_once or len(self._page) >= self._page_rows:
            self.flush()
            self._page_rows = LATER_PAGE


def _json_line(data: Data, line: bytes) -> str:
    """Return the event as the trace has it, with invisible characters escaped."""
    if not line:
        return escaped_json(json.dumps(data, ensure_ascii=False, default=str))
    text = line.decode().strip()
    # No other control character may stand in JSON.
    return text if text.isascii() and "\x7f" not in text else escaped_json(text)


STDIN = "-"

_ID = re.compile(r"(run_)?[0-9a-f]{4,32}")


def names_a_file(text: str) -> bool:
    """True for a file name rather than a run. An id is a run; a leading `./` makes it a file."""
    if text == STDIN or "/" in text:
        return True
    if _ID.fullmatch(text):
        return False
    try:
        return "." in text or Path(text).exists()
    except (OSError, ValueError):
        return False


def piped_trace() -> BinaryIO:
    """Return the piped trace. Raises `BadInput` on a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInput("no input; use `podium trace RUN`, or pipe a trace in")
    return open(sys.stdin.fileno(), "rb", closefd=False)


async def bring_up_to_date(store: Store, runs_folder: Path, run_id: str) -> str:
    """Append newer events of the journal to a run's trace. Returns the reason when that fails."""
    writer = TraceWriter(runs_folder)
    try:
        await store.read(lambda view: writer.catch_up(run_id, partial(_events, view, run_id)))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _events(view: StoreView, run_id: str, after_seq: int) -> list[Event]:
    return view.events(EventQuery(run_id=run_id, after_seq=after_seq))


app = command_app()


@app.command()
def trace(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE", help="Id of a run, or a short form; or a trace file, `-` for stdin."
        ),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until the run has ended.")
    ] = False,
    tool: Annotated[
        str, typer.Option("--tool", metavar="NAME", help="Only calls of this tool.")
    ] = "",
    failed: Annotated[bool, typer.Option("--failed", help="Only failed or denied calls.")] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Every event, without folding calls into one line.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N.")
    ] = None,
    after: Annotated[
        int, typer.Option("--after", min=0, metavar="SEQ", help="Only events after this one.")
    ] = 0,
) -> None:
    """Show a run as a timeline: every event, call by call, with totals.

    A call is one line, where it ended. With --json, raw events: one object, or one for
    each event when following.

    \b
    Example:
      podium trace 9d1f5a6b
      podium trace 9d1f5a6b --failed
      podium trace 9d1f5a6b -f --tool run_command
      podium trace .podium/runs/RUN/execution_trace.jsonl --after 5000 --limit 50
    """
    cli = CliContext(context.obj, lenient=True)
    view = TraceView(
        cli.screen,
        RowFilter(tool, failed),
        every_event=events,
        limit=limit or 0,
        at_once=source == STDIN,
        json_lines=follow,
    )
    if names_a_file(source):
        if follow:
            raise BadInput("a file cannot be followed; name its run instead")
        file = piped_trace() if source == STDIN else open_trace(Path(source))
        _show_file(cli, view, file, "stdin" if source == STDIN else source, after)
        view.end()
    else:
        _show_run(cli, view, source, after, follow=follow)
    _print_hints(cli, view, source, tool, limit or 0)


def _show_run(cli: CliContext, view: TraceView, source: str, after: int, *, follow: bool) -> None:
    cli.must_have_state("run", source)
    status, path = cli.run(lambda podium: _prepared(cli, podium, source))
    name = short_id(status.run.id)
    if status.interrupted:
        cli.screen.stderr_line(f"run {name} is interrupted; continue with `podium resume {name}`")
    # Outside of the event loop, which Ctrl-C would have to wait for.
    _show_file(cli, view, open_trace(path), f"the trace of run {name}", after, growing=True)
    if follow and not status.run.status.ended and not view.enough:
        seq = max(after, view.totals.last_seq)
        cli.run(lambda podium: _follow(podium, view, status.run.id, seq))
    view.end(run=status.run.id, shown_status=status.shown_status, hosted=status.hosted)


async def _prepared(cli: CliContext, podium: Podium, source: str) -> tuple[RunListing, Path]:
    """Return the run's status and its trace, brought up to date where possible."""
    store: Store = await podium.store()
    run_id = await store.read(lambda view: find_id(view, "run", source))
    run = await store.read(lambda view: view.run(run_id))
    if run is None:
        raise UnknownId("run", source)
    (status,) = await with_host_status([run], podium.engine)
    folder = podium.folders.state / "runs"
    if problem := await bring_up_to_date(store, folder, run_id):
        cli.screen.stderr_line(
            f"podium: the trace could not be updated: {problem}; "
            f"read the journal with `podium logs {short_id(run_id)}`"
        )
    return status, TraceWriter(folder).path(run_id)


def _show_file(
    cli: CliContext,
    view: TraceView,
    file: BinaryIO,
    name: str,
    after: int,
    *,
    growing: bool = False,
) -> None:
    reading = TraceReader(file, name)
    with file:
        view.read(reading, after)
    for problem in reading.problems:
        cli.screen.stderr_line(f"podium: {problem}")
    if (others := reading.problem_count - len(reading.problems)) > 0:
        cli.screen.stderr_line(f"podium: {name}: {others} more")
    # Of a run it is what another process is writing just now: what a crash tore has been mended.
    if reading.torn and not growing:
        cli.screen.stderr_line(f"podium: {name}: the last line is incomplete and was skipped")


async def _follow(podium: Podium, view: TraceView, run_id: str, after: int) -> None:
    view.watch()
    logs = follow_logs(await podium.store(), run_id, follow=True, after_seq=after)
    async with aclosing(logs):  # type: ignore[type-var]  # it is an async generator
        async for event in logs:
            view.show(event.line())
            if view.enough:
                return


def _print_hints(cli: CliContext, view: TraceView, source: str, tool: str, limit: int) -> None:
    """Print hints for the next command."""
    totals = view.totals
    if limit and view.printed >= limit:
        cli.screen.stderr_line(
            f"limit reached; continue with `podium trace {source} --after {totals.last_seq}`"
        )
    elif not totals.events:
        cli.screen.stderr_line("no events")
    elif not view.printed and tool and tool not in totals.tools:
        called = ", ".join(escaped_line(name[:61], 60) for name in sorted(totals.tools)) or "none"
        cli.screen.stderr_line(f"no call of {tool!r}; called tools: {called}")
    elif not view.printed:
        cli.screen.stderr_line("no matching events")
