"""A person's no: final, recorded, and the waiting run told, in one transaction."""

from __future__ import annotations

from podium.domain.approving import reject as rejected_approval
from podium.domain.events import ApprovalRejected
from podium.domain.gating import Approval, ApprovalStatus
from podium.ports import Clock, Ids, Store, Tx
from podium.usecases.approve import open_approval, refuse_expired, tell_run


async def reject(
    store: Store, clock: Clock, ids: Ids, approval: str, *, by: str, why: str
) -> Approval:
    """Say no to an approval. The run is told, and the agent hears `why`.

    Raises `NotPossibleNow` when it is not open any more.
    """

    def work(tx: Tx) -> Approval:
        now = clock.now()
        known = open_approval(tx, approval, now)
        if known.status is ApprovalStatus.EXPIRED:
            return known
        refused = rejected_approval(known, by, now, why)
        tx.save_approval(refused)
        tx.append(refused.run_id, ApprovalRejected(approval_id=refused.id, by=by, why=why))
        tell_run(tx, refused, by, now, ids.new("sig"))
        return refused

    return refuse_expired(await store.write(work))
