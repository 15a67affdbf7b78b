"""Settlement of a call: its record becomes a receipt and its approval is consumed, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from podium.core.approval_steps import ApprovalRecord, consume, release
from podium.core.decisions import Approval, CallOutcome, CallRecord, CallStatus, Receipt
from podium.core.events import ApprovalConsumed
from podium.core.model import Json

ReceiptStatus = Literal["completed", "failed", "in_doubt", "abandoned", "rolled_back"]


def draft_receipt(
    record: CallRecord,
    status: ReceiptStatus,
    settled_at: datetime,
    *,
    outcome: CallOutcome | None = None,
    approval: Approval | None = None,
    fields: dict[str, Json] | None = None,
    undo: dict[str, Json] | None = None,
) -> Receipt:
    """A receipt for the store to number, chain and seal."""
    ended = outcome or CallOutcome(ok=False)
    grants = approval.grants if approval else ()
    proofs = tuple(grant.authentication for grant in grants)
    return Receipt(
        run_id=record.run_id,
        number=0,
        call_key=record.key,
        tool=record.tool,
        digest=record.digest,
        status=status,
        tier=record.decision.tier,
        rule=record.decision.rule,
        agent=record.agent,
        role=record.role,
        approval_id=record.approval_id,
        approved_by=tuple(grant.by for grant in grants),
        approved_how=proofs if any(proofs) else (),
        fields=fields or {},
        error=ended.error,
        usage=ended.usage,
        undo=undo,
        requested_at=record.requested_at,
        settled_at=settled_at,
    )


class CallsAndApprovals(ApprovalRecord, Protocol):
    """The part of a transaction that an approval is used up in."""

    def calls(self, run_id: str, status: CallStatus | None = None) -> Sequence[CallRecord]: ...


def use_up(
    tx: CallsAndApprovals, record: CallRecord, approval: Approval | None, receipt: Receipt
) -> None:
    """Use up the approval that the call held, in the transaction of its receipt.

    That of a plan stays held until the last of its calls.
    """
    if approval is None or (approval.plan_hash and not _is_last_call(tx, record, approval)):
        return
    tx.save_approval(consume(approval, _holder(record, approval), receipt.number))
    tx.append(record.run_id, ApprovalConsumed(approval_id=approval.id, receipt=receipt.number))


def give_back(tx: CallsAndApprovals, record: CallRecord, approval: Approval | None) -> None:
    """Free the approval of a call that certainly did not happen. A plan's run keeps its own."""
    if approval is not None and not approval.plan_hash:
        tx.save_approval(release(approval, record.key))


def _holder(record: CallRecord, approval: Approval) -> str:
    return approval.run_id if approval.plan_hash else record.key


def _is_last_call(tx: CallsAndApprovals, record: CallRecord, approval: Approval) -> bool:
    settled = (CallStatus.COMPLETED, CallStatus.FAILED)
    others = {
        call.step_key
        for call in tx.calls(record.run_id)
        if call.approval_id == approval.id and call.status in settled
    }
    return len(others - {record.step_key}) >= approval.plan_calls - 1
