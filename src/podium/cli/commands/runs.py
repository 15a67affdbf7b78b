"""`podium runs`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.run_continuation import left_alone
from podium.app.run_list import (
    RunCollision,
    RunListing,
    ShownStatus,
    find_collisions,
    list_by_status,
)
from podium.cli.app import command_app
from podium.cli.context import Door
from podium.core.ids import short_id
from podium.render.text import escaped_line, local_time

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
    found: list[RunListing] = []
    collide: list[RunCollision] = []
    answered: dict[str, str] = {}
    if door.has_state:

        async def work(
            podium: Podium,
        ) -> tuple[list[RunListing], list[RunCollision], dict[str, str]]:
            store = await podium.store()
            stand = await list_by_status(store, podium.engine, wanted, flow=flow, limit=limit)
            left = {run.id: says for run, says in await left_alone(store, podium.engine)}
            return stand, await find_collisions(store, [each.run for each in stand]), left

        found, collide, answered = door.run(work)

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
        for stands in found:
            if says := answered.get(stands.run.id):
                door.screen.aside(f"answered, but {says}")
        for each in collide:
            door.screen.aside(
                f"{short_id(each.run)} and {short_id(each.other)} change the same lines of "
                f"{escaped_line(', '.join(each.paths[:5]))}: whichever is merged second will conflict"
            )

    record = {
        "runs": [stands.record() for stands in found],
        "collisions": [each.model_dump(mode="json") for each in collide],
    }
    door.screen.answer(record, words)


def _row(stands: RunListing) -> tuple[str, ...]:
    run = stands.run
    return (short_id(run.id), stands.shown_status, run.flow, local_time(run.created_at), run.task)
