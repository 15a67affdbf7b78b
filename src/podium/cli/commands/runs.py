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
from podium.cli.context import CliContext
from podium.core.ids import short_id
from podium.render.text import escaped_line, local_time

app = command_app()


@app.command()
def runs(
    context: typer.Context,
    status: Annotated[
        list[ShownStatus] | None, typer.Option("--status", help="Only runs with this status.")
    ] = None,
    flow: Annotated[str | None, typer.Option("--flow", help="Only runs of this flow.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="Maximum number of runs.")
    ] = 20,
) -> None:
    """List runs, newest first.

    \b
    Example:
      podium runs --status waiting --status needs_human
      podium runs --status interrupted
    """
    cli = CliContext(context.obj, lenient=True)
    statuses = [item.value for item in status or ()]
    listed: list[RunListing] = []
    collide: list[RunCollision] = []
    answered: dict[str, str] = {}
    if cli.has_state:

        async def work(
            podium: Podium,
        ) -> tuple[list[RunListing], list[RunCollision], dict[str, str]]:
            store = await podium.store()
            stand = await list_by_status(store, podium.engine, statuses, flow=flow, limit=limit)
            left = {run.id: says for run, says in await left_alone(store, podium.engine)}
            return (
                stand,
                await find_collisions(store, [run_status.run for run_status in stand]),
                left,
            )

        listed, collide, answered = cli.run(work)

    def render() -> None:
        if not listed:
            cli.screen.stderr_line("no runs")
            return
        cli.screen.table(
            ("RUN", "STATUS", "FLOW", "CREATED", "TASK"),
            [_row(run_status) for run_status in listed],
        )
        left = [short_id(run_status.run.id) for run_status in listed if run_status.interrupted]
        if left:
            cli.screen.stderr_line(
                f"not hosted: {', '.join(left)}; continue with `podium resume {left[0]}`"
            )
        for run_status in listed:
            if says := answered.get(run_status.run.id):
                cli.screen.stderr_line(f"answered, but {says}")
        for collision in collide:
            cli.screen.stderr_line(
                f"{short_id(collision.run)} and {short_id(collision.other)} change the same lines of "
                f"{escaped_line(', '.join(collision.paths[:5]))}: the one merged second will conflict"
            )

    record = {
        "runs": [run_status.record() for run_status in listed],
        "collisions": [item.model_dump(mode="json") for item in collide],
    }
    cli.screen.answer(record, render)


def _row(run_status: RunListing) -> tuple[str, ...]:
    run = run_status.run
    return (
        short_id(run.id),
        run_status.shown_status,
        run.flow,
        local_time(run.created_at),
        run.task,
    )
