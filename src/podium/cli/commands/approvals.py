"""`podium approvals`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.approval_screen import show_approval as show_in_full
from podium.cli.command import command_app
from podium.cli.door import Door
from podium.domain.approving import approval_named_in
from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.ids import short_id
from podium.telling.approval_words import waits_for, what_line
from podium.telling.wording import moment
from podium.usecases import NewestApprovals, newest_approvals, show_approval
from podium.wiring import Podium

app = command_app()


@app.command()
def approvals(
    context: typer.Context,
    approval: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Show this one in full.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Answered, used and expired ones too.")
    ] = False,
) -> None:
    """List what waits for a person, or show one approval in full.

    Characters that cannot be seen are written out, as in \\x1b or \\u202e.

    \b
    Example:
      podium approvals
      podium approvals 3e9d1f5a
    """
    door = Door(context.obj, lenient=True)
    if approval is not None:
        _one(door, approval)
        return
    statuses = () if everything else (ApprovalStatus.PENDING,)
    found = NewestApprovals()
    if door.has_state:

        async def work(podium: Podium) -> NewestApprovals:
            return await newest_approvals(await podium.store(), podium.clock, statuses=statuses)

        found = door.run(work)

    def words() -> None:
        if not found.shown:
            door.screen.aside("nothing waits for a person")
            return
        headers = ("APPROVAL", "STATUS", "TIER", "RUN", "WAITS FOR", "DEADLINE", "WHAT")
        door.screen.table(headers, [_row(approval) for approval in found.shown])
        if found.more:
            door.screen.aside(f"… and {found.more} more, which are older")
        door.screen.aside("`podium approvals ID` shows one in full")

    listed = [one.model_dump(mode="json") for one in found.shown]
    door.screen.answer({"approvals": listed, "more": found.more}, words)


def _one(door: Door, approval: str) -> None:
    door.must_have_state("approval", approval_named_in(approval) or approval)

    async def work(podium: Podium) -> Approval:
        return await show_approval(await podium.store(), podium.clock, approval)

    found = door.run(work)
    record = {"approval": found.model_dump(mode="json")}
    door.screen.answer(record, lambda: show_in_full(door.screen, found))


def _row(approval: Approval) -> tuple[str, ...]:
    return (
        short_id(approval.id),
        approval.status.value,
        str(approval.tier),
        short_id(approval.run_id),
        waits_for(approval),
        moment(approval.deadline),
        what_line(approval),
    )
