"""`podium approve`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.answering import Answered, answered
from podium.cli.approval_screen import show_approval
from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.login import approver
from podium.cli.rooting import RootToo, take_root
from podium.domain.approving import approval_named_in
from podium.domain.gating import ApprovalStatus
from podium.telling.approval_words import DELIVERY, waits_for, what_line
from podium.usecases import approval_meant
from podium.usecases import approve as say_yes
from podium.wiring import Podium

app = command_app()


@app.command()
def approve(
    context: typer.Context,
    approval: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Id of the approval, a short form, APPROVE: ID, or of the work order.",
        ),
    ],
    say: Annotated[
        str,
        typer.Option(
            "--say",
            metavar="WORDS",
            help="Words for the agent: the answer to its question. Where it has choices, one of them, its number, or "
            "your own words.",
        ),
    ] = "",
    root: RootToo = None,
) -> None:
    """Say yes to an approval. It holds once, for exactly what it shows, until its deadline.

    \b
    Example:
      podium approve 3e9d1f5a
      podium approve 3e9d1f5a --say "the second one"
      podium approve WO-FIX-OPAL_API
    """
    take_root(context, root)
    door = Door(context.obj)
    door.must_have_state("approval", approval_named_in(approval) or approval)

    who = approver(door)

    async def work(podium: Podium) -> Answered:
        groups = podium.settings.approvers
        store = await podium.store()
        meant = await store.read(lambda view: approval_meant(view, approval))
        yes = await say_yes(store, podium.clock, podium.ids, meant, by=who, groups=groups, said=say)
        return await answered(podium, yes)

    given = door.run(work)
    granted = given.approval

    def words() -> None:
        if granted.status is ApprovalStatus.GRANTED:
            door.screen.line(f"approved {granted.id}\n")
        else:
            group = waits_for(granted)
            door.screen.line(f"noted; {granted.id} still waits for somebody of {group!r}\n")
        if granted.tool == DELIVERY:
            # `podium candidates show` has the order whole.
            door.screen.line(what_line(granted))
        else:
            show_approval(door.screen, granted)
        if given.next:
            door.screen.aside(given.next)

    door.screen.answer(given.record(), words)
