"""`podium resolve`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.login import approver
from podium.domain.gating import CallRecord
from podium.usecases import find_call_key, resolve_call
from podium.wiring import Podium

app = command_app()


@app.command()
def resolve(
    context: typer.Context,
    call: Annotated[
        str, typer.Argument(metavar="CALL", help="The call's key, as `podium show` prints it.")
    ],
    happened: Annotated[
        bool | None,
        typer.Option("--happened/--not-happened", help="What became of it.", show_default=False),
    ] = None,
) -> None:
    """Say whether a call in doubt happened. Look first; then resume its run.

    \b
    Example:
      podium resolve 9d1f5a6b:publish:3f2a9c41d07e.0 --not-happened
    """
    if happened is None:
        raise typer.BadParameter("say --happened or --not-happened")
    door = Door(context.obj)
    door.must_have_state("run", call.partition(":")[0])

    who = approver(door)

    async def work(podium: Podium) -> CallRecord:
        store = await podium.store()
        key = await store.read(lambda view: find_call_key(view, call))
        return await resolve_call(store, podium.clock, key, happened=happened, by=who.name)

    record = door.run(work)
    state = "happened" if happened else "did not happen"
    door.screen.answer(
        {"call": record.model_dump(mode="json")},
        lambda: door.screen.line(
            f"call {record.key} {state}; `podium resume {record.run_id}` goes on"
        ),
    )
