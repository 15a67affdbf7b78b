"""Asking a person: the approval a call waits for."""

from __future__ import annotations

from datetime import datetime

from podium.domain.events import ApprovalRequested
from podium.domain.gating import Approval, ApprovalStatus, Decision
from podium.ports import Tx
from podium.tools import wording
from podium.tools.wish import Wish


def newest_approval(tx: Tx, digest: str) -> Approval | None:
    """The latest word on this digest, whatever it was. A digest belongs to one run."""
    return tx.approval_for(digest, tuple(ApprovalStatus))


def ask_person(
    tx: Tx, wish: Wish, decision: Decision, approval_id: str, deadline: datetime
) -> Approval:
    """Store a question about exactly this call."""
    approval = Approval(
        id=approval_id,
        run_id=wish.call.run_id,
        call_key=wish.call.key,
        digest=wish.digest,
        tool=wish.call.tool,
        summary=wording.summary_of(wish.call, wish.spec),
        arguments=wish.call.arguments,
        tier=decision.tier,
        arithmetic=decision.arithmetic,
        reason=decision.reason,
        approvers=decision.approvers or (wish.spec.approvals if wish.spec else ()),
        requested_at=wish.now,
        deadline=deadline,
        diff=wish.diff or "",
    )
    tx.save_approval(approval)
    tx.append(
        approval.run_id,
        ApprovalRequested(
            approval_id=approval.id,
            call=approval.call_key,
            tool=approval.tool,
            summary=approval.summary,
            digest=approval.digest,
            tier=str(approval.tier),
            arithmetic=approval.arithmetic,
            approvers=approval.approvers,
            deadline=approval.deadline,
            files=wish.call.files,
            diff=approval.diff,
        ),
    )
    return approval
