"""A yes to a plan, found good for one of its calls.

People approve the plan, or the work order, as it stands in the run's input. A call that claims to be a part of it is
held against that input here, in the transaction that permits it: its number, its tool, and its
arguments with the references to earlier results filled in from those calls' own records.
"""

from __future__ import annotations

import re
from datetime import timedelta

from podium.domain.approving import mark_expired
from podium.domain.gating import Approval, ApprovalStatus, CallStatus
from podium.domain.model import Json
from podium.domain.operating import filled_in
from podium.domain.planned_calls import PlannedCall, planned_call
from podium.domain.schemas import with_defaults
from podium.ports import Tx
from podium.tools.wish import Wish

_CALL_STEP = re.compile(r"call(\.again-\d+)?#(?P<number>\d+)")
"""The steps that a plan's calls are made in; their index is the call's number."""


def plan_approval(tx: Tx, wish: Wish) -> Approval | None:
    """The approval of the plan that this call is truly a part of; None when there is no such thing."""
    place = wish.call.plan
    approval = tx.approval(place.approval_id) if place and place.approval_id else None
    if place is None or approval is None or approval.run_id != wish.call.run_id:
        return None
    if not _open(tx, approval, wish):
        return None
    step = _step_of(tx, wish, approval, place.step)
    if step is None or not _is(tx, wish, step) or _used(tx, wish, approval, step.number):
        return None
    return approval


def as_for_this_call(approval: Approval, wish: Wish) -> Approval:
    """What the gate is shown: a yes to this call, by those of the plan's people that its tool wants."""
    wanted = wish.spec.approvals if wish.spec else ()
    grants = tuple(each for each in approval.grants if each.group in wanted) if wanted else ()
    update = {
        "digest": wish.digest,
        "status": ApprovalStatus.GRANTED,
        "grants": grants or approval.grants,
        # Once the plan has begun it may be finished.
        "deadline": max(approval.deadline, wish.now + timedelta(seconds=1)),
    }
    return approval.model_copy(update=update)


def _open(tx: Tx, approval: Approval, wish: Wish) -> bool:
    if approval.status is ApprovalStatus.RESERVED:
        return approval.reserved_by == wish.call.run_id
    if approval.status is not ApprovalStatus.GRANTED:
        return False
    return mark_expired(tx, approval, wish.now) is approval


def _used(tx: Tx, wish: Wish, approval: Approval, number: int) -> bool:
    """Whether the yes to this step is spent: it was done, or it failed and the time is over.

    By the receipts: a retry forgets steps and calls, and never those.
    """
    run_id = wish.call.run_id
    tried = [
        receipt.status
        for receipt in tx.receipts(run_id)
        if receipt.approval_id == approval.id
        and _number_in(receipt.call_key.removeprefix(f"{run_id}:").rpartition(":")[0]) == number
    ]
    if "completed" in tried:
        return True
    return "failed" in tried and approval.deadline <= wish.now


def _step_of(tx: Tx, wish: Wish, approval: Approval, number: int) -> PlannedCall | None:
    run = tx.run(wish.call.run_id)
    return planned_call(run, approval.plan_hash, number) if run else None


def _is(tx: Tx, wish: Wish, step: PlannedCall) -> bool:
    if step.tool != wish.call.tool or wish.spec is None:
        return False
    if _number_in(wish.call.step_key) != step.number:
        return False
    try:
        wanted = filled_in(step.arguments, _results(tx, wish.call.run_id))
    except KeyError:
        return False
    return with_defaults(wish.spec.input_schema, wanted) == wish.call.arguments


def _results(tx: Tx, run_id: str) -> dict[int, Json]:
    """What the plan's calls gave so far, by number."""
    found = {}
    for record in tx.calls(run_id, CallStatus.COMPLETED):
        number = _number_in(record.step_key)
        if number is not None and record.outcome is not None:
            found[number] = record.outcome.result
    return found


def _number_in(step_key: str) -> int | None:
    match = _CALL_STEP.fullmatch(step_key)
    return int(match["number"]) if match else None
