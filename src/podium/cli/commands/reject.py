"""`podium reject`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.answering import Answered, answered
from podium.cli.approval_screen import show_approval
from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.login import approver
from podium.cli.rooting import RootToo, root_words, take_root
from podium.cli.screen import Screen
from podium.domain.errors import NotPossibleNow
from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.ids import short_id
from podium.ports import Store, View
from podium.telling.approval_words import DELIVERY, what_line
from podium.telling.untrusted import shown_line
from podium.usecases import CANDIDATE, approval_meant
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
    root: RootToo = None,
) -> None:
    """Say no to an approval. That is final, and the agent hears why.

    \b
    Example:
      podium reject 3e9d1f5a --why "not before the release"
    """
    take_root(context, root)
    door = Door(context.obj, lenient=True)
    door.must_have_state("approval", approval)

    who = approver(door)

    async def work(podium: Podium) -> Answered:
        store = await podium.store()
        meant = await store.read(lambda view: approval_meant(view, approval))
        try:
            no = await say_no(store, podium.clock, podium.ids, meant, by=who, why=why)
        except NotPossibleNow as too_late:
            raise await _with_a_way(store, podium, meant, too_late) from None
        return await answered(podium, no)

    given = door.run(work)

    def words() -> None:
        door.screen.line(f"rejected {given.approval.id}\n")
        if given.approval.tool == DELIVERY:
            _tell_undelivered(door.screen, given.approval)
        else:
            show_approval(door.screen, given.approval)
        if given.next:
            door.screen.aside(given.next)

    door.screen.answer(given.record(), words)


def _tell_undelivered(screen: Screen, refused: Approval) -> None:
    """Of an order that nobody will see; `podium candidates show` has it whole."""
    screen.facts(
        [
            ("what", what_line(refused)),
            ("rejected by", shown_line(refused.rejected_by)),
            ("because", shown_line(refused.why)),
        ]
    )


async def _with_a_way(
    store: Store, podium: Podium, meant: str, too_late: NotPossibleNow
) -> NotPossibleNow:
    """The same refusal; of a candidate that has its yes and is not delivered yet, with how to stop it."""
    granted = await store.read(lambda view: _undelivered(view, meant))
    if granted is None:
        return too_late
    command = f"podium cancel {short_id(granted.run_id)}{root_words(podium.folders.project)}"
    return NotPossibleNow(f"{too_late}; it is not delivered yet: `{command}` stops it")


def _undelivered(view: View, meant: str) -> Approval | None:
    for approval_id in view.find_ids("approval", meant)[:1]:
        approval = view.approval(approval_id)
        run = view.run(approval.run_id) if approval else None
        is_granted = approval is not None and approval.status is ApprovalStatus.GRANTED
        if is_granted and run is not None and run.flow == CANDIDATE and not run.status.ended:
            return approval
    return None
