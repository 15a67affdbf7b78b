"""Approvals, with those whose deadline has passed marked as expired on the way."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.approving import expire, mark_expired
from podium.domain.gating import Approval, ApprovalStatus
from podium.ports import Clock, Store, Tx

OPEN = (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
"""What can still expire."""


async def list_approvals(
    store: Store,
    clock: Clock,
    *,
    statuses: Sequence[ApprovalStatus] = (ApprovalStatus.PENDING,),
    run_id: str | None = None,
) -> list[Approval]:
    """Approvals in these states; all when none is named. What is overdue is stored as expired first."""
    now = clock.now()
    still_open = await store.read(lambda view: view.approvals(statuses=OPEN))
    due = [approval.id for approval in still_open if expire(approval, now)]

    def mark(tx: Tx) -> None:
        for approval_id in due:
            approval = tx.approval(approval_id)
            if approval is not None:
                mark_expired(tx, approval, now)

    if due:
        await store.write(mark)
    return await store.read(lambda view: view.approvals(run_id=run_id, statuses=statuses))
