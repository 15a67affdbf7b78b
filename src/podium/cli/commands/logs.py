"""`podium logs`."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.screen import Screen
from podium.domain.events import Event
from podium.domain.ids import short_id
from podium.telling.event_words import event_line
from podium.usecases import Standing, follow_logs, how_they_stand, show_run
from podium.wiring import Podium

app = command_app()


@app.command()
def logs(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")
    ] = False,
    tail: Annotated[
        int | None,
        typer.Option("--tail", min=0, metavar="N", help="Only the last N that are there."),
    ] = None,
) -> None:
    """Print a run's events, or follow them live.

    With --json one object, or one for each event when following.

    \b
    Example:
      podium logs 9d1f5a6b -f
      podium logs 9d1f5a6b --tail 20
    """
    door = Door(context.obj, lenient=True)
    door.must_have_state("run", run)
    screen = door.screen
    gathering = screen.json and not follow
    gathered: list[Event] = []

    async def work(podium: Podium) -> Standing:
        store = await podium.store()
        report = await show_run(store, run, last_events=0)
        (stands,) = await how_they_stand([report.run], podium.engine)
        if follow:
            _tell(screen, stands)
        last = await store.read(lambda view: view.last_seq(report.run.id))
        after = 0 if tail is None else max(0, last - tail)
        logs = follow_logs(store, report.run.id, follow=follow, after_seq=after)
        async with aclosing(logs):  # type: ignore[type-var]  # it is an async generator
            async for event in logs:
                if gathering:
                    gathered.append(event)
                else:
                    screen.answer(event.line(), lambda: screen.line(event_line(event)))  # noqa: B023 - called at once
                if screen.reader_gone:
                    break
        return stands

    stands = door.run(work)
    if gathering:
        how = {"shown_status": stands.shown_status, "hosted": stands.hosted}
        screen.record({"events": [event.line() for event in gathered], **how})
    elif not follow:
        _tell(screen, stands)


def _tell(screen: Screen, stands: Standing) -> None:
    """Say of a run that nobody hosts why nothing more is to be seen of it."""
    if stands.interrupted:
        name = short_id(stands.run.id)
        screen.aside(f"run {name} is interrupted: `podium resume {name}` goes on")
