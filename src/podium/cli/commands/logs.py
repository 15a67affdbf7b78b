"""`podium logs`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.event_words import event_line
from podium.domain.events import Event
from podium.usecases import follow_logs
from podium.wiring import Podium

app = command_app()


@app.command()
def logs(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")
    ] = False,
) -> None:
    """Print a run's events, or follow them live.

    With --json one object, or one for each event when following.

    \b
    Example:
      podium logs 9d1f5a6b -f
    """
    door = Door(context.obj)
    door.must_have_state("run", run)
    gathering = door.screen.json and not follow
    gathered: list[Event] = []

    async def work(podium: Podium) -> None:
        async for event in follow_logs(await podium.store(), run, follow=follow):
            if gathering:
                gathered.append(event)
            else:
                door.screen.answer(event.line(), lambda: door.screen.line(event_line(event)))  # noqa: B023 - called at once

    door.run(work)
    if gathering:
        door.screen.record({"events": [event.line() for event in gathered]})
