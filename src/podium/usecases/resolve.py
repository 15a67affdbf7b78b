"""A person says what became of a call in doubt."""

from __future__ import annotations

from datetime import datetime

from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.events import ToolCompleted, ToolResolved
from podium.domain.gating import CallRecord, CallStatus, Outcome
from podium.domain.settling import draft_receipt, give_back, use_up
from podium.ports import Clock, Store, Tx


async def resolve_call(
    store: Store, clock: Clock, call_key: str, *, happened: bool, by: str
) -> CallRecord:
    """Settle a doubt in one transaction. The run stays where it is until it is resumed.

    It happened: the call counts as completed, with a receipt, and its approval is used up. It did
    not: the call may be requested again, and its approval stands again. Raises `NotPossibleNow`
    when the call is not in doubt.
    """
    return await store.write(
        lambda tx: _resolve(tx, call_key, happened=happened, by=by, now=clock.now())
    )


def _resolve(tx: Tx, call_key: str, *, happened: bool, by: str, now: datetime) -> CallRecord:
    record = tx.call(call_key)
    if record is None:
        raise BadInput(f"no call {call_key!r}; `podium show RUN` lists the calls of a run")
    if record.status is not CallStatus.IN_DOUBT:
        raise NotPossibleNow(
            f"call {call_key!r} is {record.status}; only calls in doubt can be resolved"
        )
    tx.append(record.run_id, ToolResolved(call=record.key, by=by, happened=happened))
    resolved = _completed(tx, record, by, now) if happened else _undone(tx, record)
    tx.save_call(resolved)
    return resolved


def _completed(tx: Tx, record: CallRecord, by: str, now: datetime) -> CallRecord:
    outcome = Outcome(ok=True, result={"resolved_by": by})
    approval = tx.approval(record.approval_id) if record.approval_id else None
    receipt = tx.add_receipt(
        draft_receipt(
            record, "completed", now, outcome=outcome, approval=approval, fields=outcome.result
        )
    )
    tx.append(
        record.run_id,
        ToolCompleted(
            call=record.key, tool=record.tool, result=outcome.result, receipt=receipt.number
        ),
    )
    use_up(tx, record, approval, receipt)
    update = {
        "status": CallStatus.COMPLETED,
        "outcome": outcome,
        "receipt_number": receipt.number,
        "settled_at": now,
    }
    return record.model_copy(update=update)


def _undone(tx: Tx, record: CallRecord) -> CallRecord:
    """A refused call is judged anew when it is requested again."""
    give_back(tx, record, tx.approval(record.approval_id) if record.approval_id else None)
    return record.model_copy(update={"status": CallStatus.REFUSED})
