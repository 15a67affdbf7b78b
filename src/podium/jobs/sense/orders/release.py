"""Release of an order: the approval carried from delivery to its run, one run per name, and the answer the journal supports."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from podium.core.decisions import Approval, ApprovalStatus, Grant, Receipt, Tier, digest_of
from podium.core.errors import NotPossibleNow
from podium.core.events import ApprovalGranted, ApprovalRequested
from podium.jobs.sense.deps import WorkerDeps
from podium.jobs.sense.job import CANDIDATE
from podium.jobs.sense.orders.work_order import (
    MAX_OUTPUT,
    Ack,
    Operation,
    OpResult,
    OrderJob,
    WorkOrder,
)
from podium.jobs.sense.ports import OrderInbox
from podium.jobs.sense.trust import TrustEntry, earned_trust
from podium.ports import StoreView, Transaction

EARNED = "earned-autonomy"
"""The rule under which an order is delivered unasked."""
ORDER_TOOL = "work_order"
"""Tool name in the approval of a whole order."""
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def release(
    tx: Transaction, deps: WorkerDeps, job: OrderJob, run_id: str, entries: Sequence[TrustEntry]
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
    delivery = _delivery(tx, order, hashlib.sha256(deps.order_text(order).encode()).hexdigest())
    grants = _grants(tx, order, delivery, entries, deps.clock.now()) if delivery else ()
    if delivery is None or not grants:
        return None
    spent = f"released:{delivery.run_id}#{delivery.number}"
    if tx.counted(spent, BEGINNING):
        return None
    tx.count(spent, deps.clock.now())
    return _granted(tx, deps, order, run_id, digest, grants)


def _delivery(tx: Transaction, order: WorkOrder, sha256: str) -> Receipt | None:
    """The receipt that proves that this very order was delivered by Podium."""
    run = tx.run(order.delivered_by) if order.delivered_by else None
    if run is None or run.flow != CANDIDATE:
        return None
    expected = {"wo_id": order.id, "sha256": sha256}
    return next(
        (
            receipt
            for receipt in tx.receipts(run.id)
            if receipt.tool == "deliver_order"
            and receipt.status == "completed"
            and expected.items() <= receipt.fields.items()
        ),
        None,
    )


def _grants(
    tx: Transaction,
    order: WorkOrder,
    delivery: Receipt,
    entries: Sequence[TrustEntry],
    now: datetime,
) -> tuple[Grant, ...]:
    """Return the grants: of the order itself, or of autonomy granted beforehand that is still in force."""
    approval = tx.approval(delivery.approval_id) if delivery.approval_id else None
    if approval is not None:
        return approval.grants
    if delivery.rule != EARNED:
        return ()
    granted = [
        trust
        for trust in earned_trust(entries)
        if trust.target == order.target and trust.zone in order.zones and trust.granted is not None
    ]
    if len(granted) < len(order.zones):
        return ()
    tier = order.tier if order.tier is not None else Tier.T4
    if any(trust.granted is None or trust.granted < tier for trust in granted):
        return ()
    people = dict.fromkeys(trust.granted_by for trust in granted)
    return tuple(Grant(by=f"{person} (autonomy)", at=now) for person in people)


def _granted(
    tx: Transaction,
    deps: WorkerDeps,
    order: WorkOrder,
    run_id: str,
    digest: str,
    grants: tuple[Grant, ...],
) -> Approval:
    now = deps.clock.now()
    approval = Approval(
        id=deps.ids.new("apr"),
        run_id=run_id,
        call_key=f"{run_id}:order",
        digest=digest,
        tool=ORDER_TOOL,
        summary=f"order {order.id}: {order.title}",
        arguments={"ops": [op.line for op in order.ops]},
        tier=order.tier if order.tier is not None else Tier.T2,
        reason="approved when the order was delivered",
        status=ApprovalStatus.GRANTED,
        grants=grants,
        requested_at=now,
        deadline=now + timedelta(seconds=deps.approval_seconds),
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


def take_name(tx: Transaction, wo_id: str, run_id: str, now: datetime) -> bool:
    """Take the name for this run. False: another run has it, or has done it. Asked again, the answer is the same."""
    if tx.counted(_mine(wo_id, run_id), BEGINNING):
        return True
    if tx.counted(_anyone(wo_id), BEGINNING) > 0:
        return False
    tx.count(_anyone(wo_id), now)
    tx.count(_mine(wo_id, run_id), now)
    return True


def free_name(tx: Transaction, wo_id: str, run_id: str, now: datetime) -> None:
    """Let go of a name whose order was not done: somebody may mend it and send it again."""
    freed = f"{_mine(wo_id, run_id)}:freed"
    if tx.counted(_mine(wo_id, run_id), BEGINNING) and not tx.counted(freed, BEGINNING):
        tx.count(_anyone(wo_id), now, -1.0)
        tx.count(freed, now)


def _anyone(wo_id: str) -> str:
    return f"order:{wo_id}"


def _mine(wo_id: str, run_id: str) -> str:
    return f"order:{wo_id}:{run_id}"


RUN_TOOL = "run_command"


def answer_to(inbox: OrderInbox, wo_id: str) -> Ack | None:
    """Return the answer to an order of this name. May block."""
    try:
        return inbox.answered(wo_id)
    except NotPossibleNow:
        return None  # what lies there in place of an answer is none


def was_done(inbox: OrderInbox, wo_id: str) -> bool:
    ack = answer_to(inbox, wo_id)
    return ack is not None and ack.status == "done"


def op_results(
    view: StoreView, run_id: str, ops: Sequence[Operation], *, stopped: int = 0, why: str = ""
) -> tuple[OpResult, ...]:
    """Return the result of each operation. `stopped` is the number of the one that ended the order, and `why` its reason."""
    latest = {_number_of(receipt): receipt for receipt in view.receipts(run_id)}
    results = []
    for number, op in enumerate(ops, start=1):
        receipt = latest.get(str(number))
        result = _by_receipt(view, number, op, receipt) if receipt else None
        if number == stopped:
            failed = result or OpResult(number=number, op=op.line, status="failed")
            result = failed.model_copy(update={"status": "failed", "error": why})
        results.append(result or OpResult(number=number, op=op.line, status="skipped"))
    return tuple(results)


def _number_of(receipt: Receipt) -> str:
    """Return the number of the operation a receipt proves: its step is `call#NUMBER`, or `call.again-TRY#NUMBER`."""
    step = receipt.call_key.removeprefix(f"{receipt.run_id}:").rpartition(":")[0]
    name, _, number = step.partition("#")
    return number if name.startswith("call") else ""


def _by_receipt(view: StoreView, number: int, op: Operation, receipt: Receipt) -> OpResult:
    return OpResult(
        number=number,
        op=op.line,
        status="done" if receipt.status == "completed" else "failed",
        receipt=receipt.number,
        fields=receipt.fields,
        output=_output(view, receipt),
        error=receipt.error,
    )


def _output(view: StoreView, receipt: Receipt) -> str:
    """The end of what a program said; the record has it without its secrets."""
    call = view.call(receipt.call_key) if receipt.tool == RUN_TOOL else None
    result = call.outcome.result if call is not None and call.outcome is not None else None
    if not isinstance(result, dict):
        return ""
    streams = (str(result.get(stream) or "").rstrip("\n") for stream in ("stdout", "stderr"))
    return "\n".join(text for text in streams if text)[-MAX_OUTPUT:]
