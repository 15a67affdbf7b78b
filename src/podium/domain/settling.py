"""How a call's record becomes a receipt, without I/O."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from podium.domain.gating import Approval, CallRecord, Outcome, Receipt
from podium.domain.model import Json

ReceiptStatus = Literal["completed", "failed", "in_doubt", "abandoned"]


def draft_receipt(
    record: CallRecord,
    status: ReceiptStatus,
    settled_at: datetime,
    *,
    outcome: Outcome | None = None,
    approval: Approval | None = None,
    fields: dict[str, Json] | None = None,
    undo: dict[str, Json] | None = None,
) -> Receipt:
    """A receipt for the store to number, chain and seal."""
    ended = outcome or Outcome(ok=False)
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
        approved_by=tuple(grant.by for grant in approval.grants) if approval else (),
        fields=fields or {},
        error=ended.error,
        usage=ended.usage,
        undo=undo,
        requested_at=record.requested_at,
        settled_at=settled_at,
    )
