"""A yes to an order, carried from its delivery to the run that performs it: what was approved is what runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from podium.domain.events import ApprovalGranted, ApprovalRequested
from podium.domain.gating import Approval, ApprovalStatus, Grant, Receipt, Tier, digest_of
from podium.domain.orders import OrderJob, WorkOrder
from podium.domain.trust import TrustEntry, standings
from podium.flows.sense.kit import CANDIDATE, WorkerKit
from podium.ports import Tx

EARNED = "earned-autonomy"
"""The rule under which an order is delivered unasked."""
ORDER_TOOL = "work_order"
"""What an approval of a whole order calls itself."""
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def release(
    tx: Tx, kit: WorkerKit, job: OrderJob, run_id: str, known: Sequence[TrustEntry]
) -> Approval | None:
    """The approval for this run's operations; None where nobody said yes to exactly them.

    One delivery releases one run. Asked again after a crash, the same approval is given back.
    """
    order = job.order
    if order is None or not order.ops:
        return None
    digest = digest_of(["order", order.content_hash, run_id])
    before = tx.approval_for(digest, tuple(ApprovalStatus))
    if before is not None:
        return before
    delivery = _delivery(tx, order, hashlib.sha256(kit.order_text(order).encode()).hexdigest())
    grants = _grants(tx, order, delivery, known, kit.clock.now()) if delivery else ()
    if delivery is None or not grants:
        return None
    spent = f"released:{delivery.run_id}#{delivery.number}"
    if tx.counted(spent, BEGINNING):
        return None
    tx.count(spent, kit.clock.now())
    return _granted(tx, kit, order, run_id, digest, grants)


def _delivery(tx: Tx, order: WorkOrder, sha256: str) -> Receipt | None:
    """The receipt that proves that this very order was delivered by Podium."""
    run = tx.run(order.delivered_by) if order.delivered_by else None
    if run is None or run.flow != CANDIDATE:
        return None
    wanted = {"wo_id": order.id, "sha256": sha256}
    return next(
        (
            receipt
            for receipt in tx.receipts(run.id)
            if receipt.tool == "deliver_order"
            and receipt.status == "completed"
            and wanted.items() <= receipt.fields.items()
        ),
        None,
    )


def _grants(
    tx: Tx, order: WorkOrder, delivery: Receipt, known: Sequence[TrustEntry], now: datetime
) -> tuple[Grant, ...]:
    """Who said yes: to the order itself, or beforehand by granting autonomy that still stands."""
    approval = tx.approval(delivery.approval_id) if delivery.approval_id else None
    if approval is not None:
        return approval.grants
    if delivery.rule != EARNED:
        return ()
    granted = [
        each
        for each in standings(known)
        if each.target == order.target and each.zone in order.zones and each.granted is not None
    ]
    if len(granted) < len(order.zones):
        return ()
    tier = order.tier if order.tier is not None else Tier.T4
    if any(each.granted is None or each.granted < tier for each in granted):
        return ()
    people = dict.fromkeys(each.granted_by for each in granted)
    return tuple(Grant(by=f"{person} (autonomy)", at=now) for person in people)


def _granted(
    tx: Tx, kit: WorkerKit, order: WorkOrder, run_id: str, digest: str, grants: tuple[Grant, ...]
) -> Approval:
    now = kit.clock.now()
    approval = Approval(
        id=kit.ids.new("apr"),
        run_id=run_id,
        call_key=f"{run_id}:order",
        digest=digest,
        tool=ORDER_TOOL,
        summary=f"order {order.id}: {order.title}",
        arguments={"ops": [op.line for op in order.ops]},
        tier=order.tier if order.tier is not None else Tier.T2,
        reason="said yes to when it was delivered",
        status=ApprovalStatus.GRANTED,
        grants=grants,
        requested_at=now,
        deadline=now + timedelta(seconds=kit.approval_seconds),
        plan_hash=order.content_hash,
        plan_calls=len(order.ops),
    )
    tx.append(
        run_id,
        ApprovalRequested(
            approval_id=approval.id,
            call=approval.call_key,
            tool=approval.tool,
            summary=approval.summary,
            digest=digest,
            tier=str(approval.tier),
            approvers=(),
            deadline=approval.deadline,
        ),
    )
    for grant in grants:
        tx.append(run_id, ApprovalGranted(approval_id=approval.id, by=grant.by))
    tx.save_approval(approval)
    return approval
