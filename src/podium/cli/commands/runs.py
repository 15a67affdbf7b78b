"""`podium runs`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.screen import moment
from podium.domain.ids import short_id
from podium.domain.work import Run, RunStatus
from podium.ports import RunQuery
from podium.usecases import list_runs
from podium.wiring import Podium

app = command_app()


@app.command()
def runs(
    context: typer.Context,
    status: Annotated[
        list[RunStatus] | None, typer.Option("--status", help="Only runs in this state.")
    ] = None,
    flow: Annotated[str | None, typer.Option("--flow", help="Only runs of this flow.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many.")] = 20,
) -> None:
    """List runs, newest first.

    \b
    Example:
      podium runs --status waiting --status needs_human
    """
    door = Door(context.obj)
    query = RunQuery(statuses=tuple(status or ()), flow=flow, limit=limit)
    found: list[Run] = []
    if door.has_state:

        async def work(podium: Podium) -> list[Run]:
            return await list_runs(await podium.store(), query)

        found = door.run(work)

    def words() -> None:
        if not found:
            door.screen.aside("no runs")
            return
        door.screen.table(
            ("RUN", "STATUS", "FLOW", "CREATED", "TASK"), [_row(run) for run in found]
        )

    door.screen.answer({"runs": [run.model_dump(mode="json") for run in found]}, words)


def _row(run: Run) -> tuple[str, ...]:
    return (short_id(run.id), run.status.value, run.flow, moment(run.created_at), run.task)
