"""`podium reject`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.domain.gating import Approval
from podium.usecases import reject as say_no
from podium.wiring import Podium

app = command_app()


@app.command()
def reject(
    context: typer.Context,
    approval: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the approval, or a short form.")
    ],
    why: Annotated[str, typer.Option("--why", help="The reason, which the agent is told.")],
) -> None:
    """Say no to an approval. That is final, and the agent hears why.

    \b
    Example:
      podium reject 3e9d1f5a --why "not before the release"
    """
    door = Door(context.obj)
    door.must_have_state("approval", approval)

    async def work(podium: Podium) -> Approval:
        store = await podium.store()
        return await say_no(store, podium.clock, podium.ids, approval, by=door.user, why=why)

    refused = door.run(work)
    door.screen.answer(
        {"approval": refused.model_dump(mode="json")},
        lambda: door.screen.line(f"rejected {refused.id}: {refused.summary}"),
    )
