"""Replay of a call: what an earlier record under its key means for asking again.

    record        asked again under the same key
    ─────────     ─────────────────────────────────────────────────────────────────────────
    none          judged
    refused       judged again: a person may have said yes, the policy may have changed
    abandoned     judged again
    completed     its outcome is given back and nothing is done; if the same words mean
    failed        something else by now, the call is refused. After a retry of the step it is
                  judged again, and so is a cancelled call of an idempotent tool
    requested     Podium died between the act and its record: an idempotent tool gets its
                  permit back, any other call is in doubt
    in_doubt      still in doubt

The same words mean something else when a path leads elsewhere or the tool was changed: the digest
tells. That a file which a command names has another content does not count here: what was done
stays done, and often it was the command itself that changed it. The same holds for the file that a
write replaced.

What a CLI performed in its workspace (an observed call) went with the workspace when the turn is
asked again: it is abandoned if it was open, and the new call is judged on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from podium.core.decisions import (
    Approval,
    BuiltInRule,
    CallOutcome,
    CallRecord,
    CallStatus,
    Decision,
    Effect,
    Permit,
    Receipt,
    Refusal,
    Tier,
)
from podium.core.errors import CallInDoubt
from podium.core.events import RunRetried, ToolAbandoned, ToolInDoubt, ToolRefused
from podium.core.settlement import draft_receipt, use_up
from podium.ports import EventQuery, Transaction
from podium.tools import output_text
from podium.tools.door_call import CallRequest
from podium.tools.output_text import DEFAULT_RESULT_BYTES, bound


def answer_from_record(
    tx: Transaction, request: CallRequest, record: CallRecord
) -> Permit | Refusal | CallInDoubt | None:
    """The answer that the record gives. None: judge the call.

    `CallInDoubt` is given back, not raised: what was written about the doubt has to be committed.
    """
    if record.observed:
        if record.status is CallStatus.REQUESTED:
            abandon(tx, request.now, record)
        return None
    if record.status in (CallStatus.REFUSED, CallStatus.ABANDONED):
        return None
    if record.status is CallStatus.IN_DOUBT:
        return CallInDoubt(record.key, record.tool)
    if record.status is CallStatus.REQUESTED:
        return _unfinished(tx, request, record)
    return _settled(tx, request, record)


def look_back(
    tx: Transaction, run_id: str, step_key: str, idempotent: Callable[[str], bool], now: datetime
) -> CallInDoubt | None:
    """Deal with what a crash left open in a step, before the step is done again.

    What an idempotent tool was asked for stays open: it gets its permit back when it is asked for
    again. What a CLI performed is abandoned. Any other open call is a doubt, and the first of them
    is given back.
    """
    doubts = []
    for record in tx.calls(run_id):
        if record.step_key != step_key:
            continue
        if record.status is CallStatus.IN_DOUBT:
            doubts.append(CallInDoubt(record.key, record.tool))
        elif record.status is CallStatus.REQUESTED and record.observed:
            abandon(tx, now, record)
        elif record.status is CallStatus.REQUESTED and not idempotent(record.tool):
            doubts.append(_doubt(tx, now, record))
    return doubts[0] if doubts else None


def approval_of(tx: Transaction, record: CallRecord) -> Approval | None:
    return tx.approval(record.approval_id) if record.approval_id else None


def _unfinished(
    tx: Transaction, request: CallRequest, record: CallRecord
) -> Permit | CallInDoubt | None:
    idempotent = request.spec is not None and request.spec.idempotent
    if idempotent and (record.digest == request.digest or _overwrites_nothing(request, record)):
        approval = approval_of(tx, record)
        return _permit(request, record).model_copy(
            update={"said": approval.said if approval else ""}
        )
    if idempotent and record.decision.tier is Tier.T0:
        # A read that would read something else by now leaves nothing to be in doubt about.
        abandon(tx, request.now, record)
        return None
    return _doubt(tx, request.now, record)


def _overwrites_nothing(request: CallRequest, record: CallRecord) -> bool:
    """The same call again, where the file already holds the new content or is gone: doing it again loses nothing."""
    unread = not request.call.files and not request.call.commands
    return unread and (record.meaning or record.digest) == request.meaning


def _settled(tx: Transaction, request: CallRequest, record: CallRecord) -> Permit | Refusal | None:
    if _retried_since(tx, record) or _may_be_done_again(request, record):
        return None
    if (record.meaning or record.digest) == request.meaning:
        return _permit(request, record, record.outcome)
    return _changed(tx, request, record)


def _permit(request: CallRequest, record: CallRecord, settled: CallOutcome | None = None) -> Permit:
    return Permit(
        call=request.call,
        digest=record.digest,
        decision=record.decision,
        approval_id=record.approval_id,
        settled=settled,
    )


def _retried_since(tx: Transaction, record: CallRecord) -> bool:
    """A person had this step forgotten after the call was settled."""
    query = EventQuery(run_id=record.run_id, types=("run_retried",), since=record.settled_at)
    bodies = (event.body for event in tx.events(query))
    return any(
        isinstance(body, RunRetried) and record.step_key in body.discarded_steps for body in bodies
    )


def _may_be_done_again(request: CallRequest, record: CallRecord) -> bool:
    cancelled = record.outcome is not None and record.outcome.error == output_text.CANCELLED
    return cancelled and request.spec is not None and request.spec.idempotent


def _changed(tx: Transaction, request: CallRequest, record: CallRecord) -> Refusal:
    decision = Decision(
        effect=Effect.DENY,
        rule=BuiltInRule.CALL_CHANGED,
        reason="this call was performed before, and since then one of its paths or the tool has changed; "
        "request the call again to have it judged again",
        tier=request.spec.tier if request.spec else Tier.T4,
    )
    tx.append(
        record.run_id,
        ToolRefused(
            call=record.key,
            tool=request.call.tool,
            arguments=bound(request.call.arguments, DEFAULT_RESULT_BYTES),
            effect="deny",
            tier=str(decision.tier),
            rule=decision.rule,
            reason=decision.reason,
        ),
    )
    return Refusal(call=request.call, decision=decision, say=output_text.denied(decision))


def _doubt(tx: Transaction, now: datetime, record: CallRecord) -> CallInDoubt:
    """The approval stays held: whether it was used is the very question."""
    draft = draft_receipt(record, "in_doubt", now, approval=approval_of(tx, record))
    receipt = tx.add_receipt(draft)
    tx.append(record.run_id, ToolInDoubt(call=record.key, tool=record.tool, receipt=receipt.number))
    update = {"status": CallStatus.IN_DOUBT, "receipt_number": receipt.number}
    tx.save_call(record.model_copy(update=update))
    return CallInDoubt(record.key, record.tool)


def abandon(tx: Transaction, now: datetime, record: CallRecord) -> Receipt:
    """Close a call whose end nobody knows. It may have happened, so its approval is used up."""
    approval = approval_of(tx, record)
    receipt = tx.add_receipt(draft_receipt(record, "abandoned", now, approval=approval))
    tx.append(
        record.run_id, ToolAbandoned(call=record.key, tool=record.tool, receipt=receipt.number)
    )
    use_up(tx, record, approval, receipt)
    update = {
        "status": CallStatus.ABANDONED,
        "receipt_number": receipt.number,
        "settled_at": now,
    }
    tx.save_call(record.model_copy(update=update))
    return receipt
