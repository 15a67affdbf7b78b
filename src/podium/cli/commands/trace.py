"""`podium trace`."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.trace_folding import Wanted
from podium.cli.trace_source import STDIN, bring_up_to_date, names_a_file, piped_trace
from podium.cli.trace_telling import Telling
from podium.domain.errors import BadInput, UnknownId
from podium.domain.ids import short_id
from podium.journal.trace import TraceWriter
from podium.journal.trace_reading import TraceReading, open_trace
from podium.ports import Store
from podium.telling.untrusted import shown_line
from podium.usecases import Standing, find_id, follow_logs, how_they_stand
from podium.wiring import Podium

app = command_app()


@app.command()
def trace(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE", help="Id of a run or a short form; or a trace, `-` for stdin."
        ),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")
    ] = False,
    tool: Annotated[
        str, typer.Option("--tool", metavar="NAME", help="Only calls of this tool.")
    ] = "",
    failed: Annotated[
        bool, typer.Option("--failed", help="Only what failed or was denied.")
    ] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Every event, calls not folded into one line.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N.")
    ] = None,
    after: Annotated[
        int, typer.Option("--after", min=0, metavar="SEQ", help="Only what is behind this event.")
    ] = 0,
) -> None:
    """Read a run's trace as a timeline: every event, call by call, with totals.

    A call is one line, where it ended. With --json the events as they are: one object, or one for
    each event when following.

    \b
    Example:
      podium trace 9d1f5a6b
      podium trace 9d1f5a6b --failed
      podium trace 9d1f5a6b -f --tool run_command
      podium trace .podium/runs/RUN/execution_trace.jsonl --after 5000 --limit 50
    """
    door = Door(context.obj, lenient=True)
    telling = Telling(
        door.screen,
        Wanted(tool, failed),
        every_event=events,
        limit=limit or 0,
        at_once=source == STDIN,
        json_lines=follow,
    )
    if names_a_file(source):
        if follow:
            raise BadInput("a file cannot be followed; name its run instead")
        file = piped_trace() if source == STDIN else open_trace(Path(source))
        _tell_file(door, telling, file, "stdin" if source == STDIN else source, after)
        telling.end()
    else:
        _tell_run(door, telling, source, after, follow=follow)
    _tell_rest(door, telling, source, tool, limit or 0)


def _tell_run(door: Door, telling: Telling, source: str, after: int, *, follow: bool) -> None:
    door.must_have_state("run", source)
    stands, path = door.run(lambda podium: _prepared(door, podium, source))
    name = short_id(stands.run.id)
    if stands.interrupted:
        door.screen.aside(f"run {name} is interrupted: `podium resume {name}` goes on")
    # Outside of the event loop, which Ctrl-C would have to wait for.
    _tell_file(door, telling, open_trace(path), f"the trace of run {name}", after, growing=True)
    if follow and not stands.run.status.ended and not telling.enough:
        seq = max(after, telling.totals.last_seq)
        door.run(lambda podium: _follow(podium, telling, stands.run.id, seq))
    telling.end(run=stands.run.id, shown_status=stands.shown_status, hosted=stands.hosted)


async def _prepared(door: Door, podium: Podium, source: str) -> tuple[Standing, Path]:
    """How the run stands, and its trace, brought up to date where that can be done."""
    store: Store = await podium.store()
    run_id = await store.read(lambda view: find_id(view, "run", source))
    run = await store.read(lambda view: view.run(run_id))
    if run is None:
        raise UnknownId("run", source)
    (stands,) = await how_they_stand([run], podium.engine)
    folder = podium.folders.state / "runs"
    if problem := await bring_up_to_date(store, folder, run_id):
        door.screen.aside(
            f"podium: the trace could not be brought up to date: {problem}; "
            f"`podium logs {short_id(run_id)}` reads the journal itself"
        )
    return stands, TraceWriter(folder).path(run_id)


def _tell_file(
    door: Door, telling: Telling, file: BinaryIO, name: str, after: int, *, growing: bool = False
) -> None:
    reading = TraceReading(file, name)
    with file:
        telling.read(reading, after)
    for fault in reading.faults:
        door.screen.aside(f"podium: {fault}")
    if (others := reading.fault_count - len(reading.faults)) > 0:
        door.screen.aside(f"podium: {name}: {others} more like it")
    # Of a run it is what another process is writing just now: what a crash tore has been mended.
    if reading.torn and not growing:
        door.screen.aside(f"podium: {name}: the last line is torn and left out")


async def _follow(podium: Podium, telling: Telling, run_id: str, after: int) -> None:
    telling.watch()
    logs = follow_logs(await podium.store(), run_id, follow=True, after_seq=after)
    async with aclosing(logs):  # type: ignore[type-var]  # it is an async generator
        async for event in logs:
            telling.tell(event.line())
            if telling.enough:
                return


def _tell_rest(door: Door, telling: Telling, source: str, tool: str, limit: int) -> None:
    """Say what a person may want to type next."""
    totals = telling.totals
    if limit and telling.shown >= limit:
        door.screen.aside(f"there may be more: `podium trace {source} --after {totals.last_seq}`")
    elif not totals.events:
        door.screen.aside("no events")
    elif not telling.shown and tool and tool not in totals.tools:
        called = ", ".join(shown_line(name[:61], 60) for name in sorted(totals.tools)) or "none"
        door.screen.aside(f"no call of {tool!r}; tools that were called: {called}")
    elif not telling.shown:
        door.screen.aside("nothing of it fits")
