"""`podium resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.hosting import host
from podium.domain.work import Run
from podium.usecases import resume as go_on
from podium.wiring import Podium

app = command_app()


@app.command()
def resume(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay also while the run waits for a person.")
    ] = False,
    note: Annotated[
        str, typer.Option("--note", help="Guidance for a run that asked a person.")
    ] = "",
) -> None:
    """Let a run go on here, from its checkpoint. What was done is not done again.

    Leaves with 0 when the run succeeded, 3 when it waits, 7 when another process has it.

    \b
    Example:
      podium resume 9d1f5a6b
      podium resume 9d1f5a6b --note "keep the old name"
    """
    door = Door(context.obj)
    door.must_have_state("run", run)

    async def begin(podium: Podium) -> Run:
        store, engine = await podium.store(), await podium.hosting_engine()
        return await go_on(store, engine, run, note=note, by=door.user)

    host(door, begin, wait=wait)
