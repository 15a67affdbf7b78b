"""What was taken back is not taken back again, however many people asked for it meanwhile."""

from __future__ import annotations

from podium.domain.errors import PlanNotGated
from podium.domain.gating import undone_by
from podium.flows.operator.kit import OperatorKit
from podium.ports import FlowContext, Step


async def must_not_be_undone(ctx: FlowContext, kit: OperatorKit, receipt: str) -> None:
    """Raises `PlanNotGated` when another run has reversed the receipt since this plan was made."""
    if not receipt:
        return

    async def look(step: Step) -> str:
        found = await kit.store.read(lambda view: undone_by(view.receipts(), receipt))
        return "" if found is None or found.run_id == step.run_id else found.run_id

    by = await ctx.step("not-undone", look, returns=str)
    if by:
        raise PlanNotGated(f"receipt {receipt} was undone already, by run {by}")
