"""`podium runs`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.screen import moment
from podium.domain.ids import short_id
from podium.usecases import ShownStatus, Standing, list_standings
from podium.wiring import Podium

app = command_app()


@app.command()
def runs(
    context: typer.Context,
    status: Annotated[
        list[ShownStatus] | None, typer.Option("--status", help="Only runs in this state.")
    ] = None,
    flow: Annotated[str | None, typer.Option("--flow", help="Only runs of this flow.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many.")] = 20,
) -> None:
    """List runs, newest first.

    \b
    Example:
      podium runs --status waiting --status needs_human
      podium runs --status interrupted
    """
    door = Door(context.obj, lenient=True)
    wanted = [each.value for each in status or ()]
    found: list[Standing] = []
    if door.has_state:

        async def work(podium: Podium) -> list[Standing]:
            store = await podium.store()
            return await list_standings(store, podium.engine, wanted, flow=flow, limit=limit)

        found = door.run(work)

    def words() -> None:
        if not found:
            door.screen.aside("no runs")
            return
        door.screen.table(
            ("RUN", "STATUS", "FLOW", "CREATED", "TASK"), [_row(stands) for stands in found]
        )
        left = [short_id(stands.run.id) for stands in found if stands.interrupted]
        if left:
            door.screen.aside(f"nobody hosts {', '.join(left)}: `podium resume {left[0]}` goes on")

    door.screen.answer({"runs": [stands.record() for stands in found]}, words)


def _row(stands: Standing) -> tuple[str, ...]:
    run = stands.run
    return (short_id(run.id), stands.shown_status, run.flow, moment(run.created_at), run.task)
