"""`podium retry`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.hosting import host
from podium.domain.work import Run
from podium.usecases import retry as go_again
from podium.wiring import Podium

app = command_app()


@app.command()
def retry(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    from_step: Annotated[
        str | None,
        typer.Option("--from", metavar="STEP", help="Forget this step and all after it."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay also while the run waits for a person.")
    ] = False,
) -> None:
    """Let a run go again from one of its steps; without --from, from what failed.

    \b
    Example:
      podium retry 9d1f5a6b --from review
    """
    door = Door(context.obj)
    door.must_have_state("run", run)

    async def begin(podium: Podium) -> Run:
        store, engine = await podium.store(), await podium.hosting_engine()
        return await go_again(store, engine, run, from_step=from_step, by=door.user)

    host(door, begin, wait=wait)
