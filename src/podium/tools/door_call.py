"""A call at the tool door: what is known of it, the plan's approval that covers it, the question to a person, its claim on a reversal.

People approve the plan, or the work order, as it stands in the run's input. A call that claims to be a part of it is
held against that input here, in the transaction that permits it: its number, its tool, and its
arguments with the references to earlier results filled in from those calls' own records.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from podium.core.approval_steps import store_expired
from podium.core.decisions import (
    Approval,
    ApprovalStatus,
    Budget,
    BuiltInRule,
    Call,
    CallRecord,
    CallStatus,
    Decision,
    Effect,
    Tier,
    ToolSpec,
    undo_counter,
)
from podium.core.events import ApprovalRequested
from podium.core.json_schema import with_defaults
from podium.core.model import FrozenModel, Json
from podium.core.plan_approval import PlannedCall, filled_in, planned_call
from podium.core.work import Run
from podium.ports import Transaction
from podium.tools import output_text
from podium.tools.output_text import DEFAULT_RESULT_BYTES


class DoorSettings(FrozenModel):
    """Settings of all calls at one door."""

    root: str
    """Real path of the workspace of calls that name none."""
    mode: str = "supervised"
    """Today's; the stricter of it and the one that the call's run recorded holds."""
    attended: bool = False
    """A person is at the door right now."""
    budgets: tuple[Budget, ...] = ()
    """Today's limits, beside those of the policy and those that the call's run recorded."""
    owner: str = ""
    """Worker that must own a run for its calls to pass. Empty: whoever asks."""
    result_bytes: int = DEFAULT_RESULT_BYTES
    """Limit on a result, or on arguments, in an event."""


@dataclass(frozen=True)
class CallRequest:
    """A call that is being requested. One transaction long."""

    call: Call
    spec: ToolSpec | None
    """None: the registry does not know the tool."""
    digest: str
    now: datetime
    run: Run | None = None
    """Its run, where that was looked up already."""
    diff: str | None = None
    """Diff of the file that the write replaces. None: it was not read yet."""

    @property
    def lacks_diff(self) -> bool:
        """True: a person would be asked to overwrite a file without seeing what is lost."""
        return self.diff is None and bool(self.call.files) and not self.call.commands

    @property
    def meaning(self) -> str:
        return self.call.meaning(self.spec)

    def record(
        self,
        status: CallStatus,
        decision: Decision,
        approval_id: str | None = None,
        *,
        disposable: bool = False,
    ) -> CallRecord:
        return CallRecord(
            key=self.call.key,
            run_id=self.call.run_id,
            step_key=self.call.step_key,
            tool=self.call.tool,
            digest=self.digest,
            meaning=self.meaning if self.call.files else "",
            status=status,
            decision=decision,
            arguments=self.call.arguments,
            observed=self.call.observed,
            disposable=disposable,
            agent=self.call.agent,
            role=self.call.role,
            approval_id=approval_id,
            undoes=self.call.plan.undoes if self.call.plan else "",
            requested_at=self.now,
        )


_CALL_STEP = re.compile(r"call(\.again-\d+)?#(?P<number>\d+)")
"""The steps that a plan's calls are made in; their index is the call's number."""


def plan_approval(tx: Transaction, request: CallRequest) -> Approval | None:
    """The approval of the plan that this call is truly a part of; None when there is no such thing."""
    plan = request.call.plan
    approval = tx.approval(plan.approval_id) if plan and plan.approval_id else None
    if plan is None or approval is None or approval.run_id != request.call.run_id:
        return None
    if not _open(tx, approval, request):
        return None
    step = _step_of(tx, request, approval, plan.step)
    if step is None or not _is(tx, request, step) or _used(tx, request, approval, step.number):
        return None
    return approval


def as_for_this_call(approval: Approval, request: CallRequest) -> Approval:
    """Turn a plan's approval into one for this call, by those of its approvers that the tool needs."""
    groups = request.spec.approvals if request.spec else ()
    grants = tuple(grant for grant in approval.grants if grant.group in groups) if groups else ()
    update = {
        "digest": request.digest,
        "status": ApprovalStatus.GRANTED,
        "grants": grants or approval.grants,
        # Once the plan has begun it may be finished.
        "deadline": max(approval.deadline, request.now + timedelta(seconds=1)),
    }
    return approval.model_copy(update=update)


def _open(tx: Transaction, approval: Approval, request: CallRequest) -> bool:
    if approval.status is ApprovalStatus.RESERVED:
        return approval.reserved_by == request.call.run_id
    if approval.status is not ApprovalStatus.GRANTED:
        return False
    return store_expired(tx, approval, request.now) is approval


def _used(tx: Transaction, request: CallRequest, approval: Approval, number: int) -> bool:
    """Check that the approval of this step is used up: it was done, or it failed and the deadline is over.

    By the receipts: a retry forgets steps and calls, and never those.
    """
    run_id = request.call.run_id
    tried = [
        receipt.status
        for receipt in tx.receipts(run_id)
        if receipt.approval_id == approval.id
        and _number_in(receipt.call_key.removeprefix(f"{run_id}:").rpartition(":")[0]) == number
    ]
    if "completed" in tried:
        return True
    return "failed" in tried and approval.deadline <= request.now


def _step_of(
    tx: Transaction, request: CallRequest, approval: Approval, number: int
) -> PlannedCall | None:
    run = tx.run(request.call.run_id)
    return planned_call(run, approval.plan_hash, number) if run else None


def _is(tx: Transaction, request: CallRequest, step: PlannedCall) -> bool:
    if step.tool != request.call.tool or request.spec is None:
        return False
    if _number_in(request.call.step_key) != step.number:
        return False
    try:
        expected = filled_in(step.arguments, _results(tx, request.call.run_id))
    except KeyError:
        return False
    return with_defaults(request.spec.input_schema, expected) == request.call.arguments


def _results(tx: Transaction, run_id: str) -> dict[int, Json]:
    """Return the results of the plan's calls so far, by number."""
    results = {}
    for record in tx.calls(run_id, CallStatus.COMPLETED):
        number = _number_in(record.step_key)
        if number is not None and record.outcome is not None:
            results[number] = record.outcome.result
    return results


def _number_in(step_key: str) -> int | None:
    match = _CALL_STEP.fullmatch(step_key)
    return int(match["number"]) if match else None


def newest_approval(tx: Transaction, digest: str) -> Approval | None:
    """The latest word on this digest, whatever it was. A digest belongs to one run."""
    return tx.approval_for(digest, tuple(ApprovalStatus))


def ask_person(
    tx: Transaction, request: CallRequest, decision: Decision, approval_id: str, deadline: datetime
) -> Approval:
    """Store a question about exactly this call."""
    approval = Approval(
        id=approval_id,
        run_id=request.call.run_id,
        call_key=request.call.key,
        digest=request.digest,
        tool=request.call.tool,
        summary=output_text.summary_of(request.call, request.spec),
        arguments=request.call.arguments,
        tier=decision.tier,
        arithmetic=decision.arithmetic,
        reason=decision.reason,
        approvers=decision.approvers or (request.spec.approvals if request.spec else ()),
        requested_at=request.now,
        deadline=deadline,
        diff=request.diff or "",
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
            files=request.call.files,
            diff=approval.diff,
        ),
    )
    return approval


_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def reversal_claimed(tx: Transaction, request: CallRequest) -> Decision | None:
    """A no, when the receipt that this call would reverse is being reversed, or was."""
    receipt = request.call.plan.undoes if request.call.plan else ""
    if not receipt or tx.counted(undo_counter(receipt), _BEGINNING) <= 0:
        return None
    return Decision(
        effect=Effect.DENY,
        rule=BuiltInRule.UNDONE_ALREADY,
        reason=f"receipt {receipt} has already been undone, or is being undone right now",
        tier=request.spec.tier if request.spec else Tier.T4,
    )


def claim_reversal(tx: Transaction, request: CallRequest) -> None:
    """From now on no other call may reverse that receipt."""
    if request.call.plan is not None and request.call.plan.undoes:
        tx.count(undo_counter(request.call.plan.undoes), request.now)


def give_up_reversal(tx: Transaction, record: CallRecord, at: datetime) -> None:
    """The reversal failed: another may be tried."""
    if record.undoes:
        tx.count(undo_counter(record.undoes), at, -1.0)
