"""`podium approvals`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.screen import moment
from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.ids import short_id
from podium.usecases import list_approvals
from podium.wiring import Podium

app = command_app()


@app.command()
def approvals(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Answered, used and expired ones too.")
    ] = False,
) -> None:
    """List what waits for a person.

    \b
    Example:
      podium approvals
      podium approve 3e9d1f5a
    """
    door = Door(context.obj)
    statuses = () if everything else (ApprovalStatus.PENDING,)
    found: list[Approval] = []
    if door.has_state:

        async def work(podium: Podium) -> list[Approval]:
            return await list_approvals(await podium.store(), podium.clock, statuses=statuses)

        found = door.run(work)

    def words() -> None:
        if not found:
            door.screen.aside("nothing waits for a person")
            return
        headers = ("APPROVAL", "STATUS", "TIER", "RUN", "WAITS FOR", "DEADLINE", "WHAT")
        door.screen.table(headers, [_row(approval) for approval in found])

    door.screen.answer({"approvals": [one.model_dump(mode="json") for one in found]}, words)


def _row(approval: Approval) -> tuple[str, ...]:
    answered = len(approval.grants)
    group = approval.approvers[answered] if answered < len(approval.approvers) else "anybody"
    return (
        short_id(approval.id),
        approval.status.value,
        str(approval.tier),
        short_id(approval.run_id),
        group if approval.status is ApprovalStatus.PENDING else "",
        moment(approval.deadline),
        approval.summary,
    )
