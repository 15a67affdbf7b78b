"""`podium reject`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.answering import Answered, answered
from podium.cli.approval_words import show_approval
from podium.cli.command import command_app
from podium.cli.door import Door
from podium.usecases import approval_meant
from podium.usecases import reject as say_no
from podium.wiring import Podium

app = command_app()


@app.command()
def reject(
    context: typer.Context,
    approval: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of the approval, a short form, or of the work order."
        ),
    ],
    why: Annotated[str, typer.Option("--why", help="The reason, which the agent is told.")],
) -> None:
    """Say no to an approval. That is final, and the agent hears why.

    \b
    Example:
      podium reject 3e9d1f5a --why "not before the release"
    """
    door = Door(context.obj, lenient=True)
    door.must_have_state("approval", approval)

    async def work(podium: Podium) -> Answered:
        store = await podium.store()
        meant = await store.read(lambda view: approval_meant(view, approval))
        no = await say_no(store, podium.clock, podium.ids, meant, by=door.user, why=why)
        return await answered(podium, no)

    given = door.run(work)

    def words() -> None:
        door.screen.line(f"rejected {given.approval.id}\n")
        show_approval(door.screen, given.approval)
        if given.next:
            door.screen.aside(given.next)

    door.screen.answer(given.record(), words)
