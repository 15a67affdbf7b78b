"""A person's no: final, recorded, and the waiting run told, in one transaction."""

from __future__ import annotations

from datetime import datetime

from podium.domain.approvals import Approver
from podium.domain.approving import reject as rejected_approval
from podium.domain.events import ApprovalRejected
from podium.domain.gating import Approval, ApprovalStatus
from podium.ports import Clock, Ids, Store, Tx
from podium.usecases.approve import open_approval, refuse_expired, tell_run


async def reject(
    store: Store, clock: Clock, ids: Ids, approval: str, *, by: Approver | str, why: str
) -> Approval:
    """Say no to an approval. The run is told, and the agent hears `why`.

    Raises `NotPossibleNow` when it is not open any more.
    """

    def work(tx: Tx) -> Approval:
        now = clock.now()
        known = open_approval(tx, approval, now)
        if known.status is ApprovalStatus.EXPIRED:
            return known
        return store_rejection(tx, rejected_approval(known, by, now, why), now, ids)

    return refuse_expired(await store.write(work))


def store_rejection(tx: Tx, refused: Approval, now: datetime, ids: Ids) -> Approval:
    """Store a rejected approval with its event, and wake its run."""
    tx.save_approval(refused)
    event = ApprovalRejected(
        approval_id=refused.id,
        by=refused.rejected_by,
        why=refused.why,
        authentication=refused.rejected_how,
    )
    tx.append(refused.run_id, event)
    tell_run(tx, refused, refused.rejected_by, now, ids.new("sig"))
    return refused
