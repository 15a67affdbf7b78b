"""`podium cancel`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.domain.errors import TimedOut
from podium.domain.work import Run
from podium.usecases import cancel as wish_ended
from podium.usecases import see_through
from podium.wiring import Podium

app = command_app()

PATIENCE_SECONDS = 15.0
"""TERM, five seconds, KILL, and some room."""


@app.command()
def cancel(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    why: Annotated[str, typer.Option("--why", help="The reason, for the record.")] = "",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Stay until all its processes are dead.")
    ] = True,
) -> None:
    """End a run and everything it started, whichever process hosts it.

    \b
    Example:
      podium cancel 9d1f5a6b --why "wrong branch"
    """
    door = Door(context.obj, lenient=True)
    door.must_have_state("run", run)

    async def work(podium: Podium) -> Run:
        engine = await podium.engine()
        wished = await wish_ended(await podium.store(), engine, run, by=door.user, why=why)
        if wished.status.ended or not wait:
            return wished
        try:
            return await asyncio.wait_for(see_through(engine, wished, wait=True), PATIENCE_SECONDS)
        except TimeoutError:
            raise TimedOut(
                f"run {wished.id} was told to end and has not yet; "
                f"`podium show {wished.id}` says who hosts it"
            ) from None

    ended = door.run(work)
    state = ended.status.value if ended.status.ended else "told to end"
    door.screen.answer(
        {"run": ended.model_dump(mode="json")},
        lambda: door.screen.line(f"run {ended.id} {state}"),
    )
