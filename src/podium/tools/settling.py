"""The second half of the door: one transaction that records how a permitted call ended."""

from __future__ import annotations

from dataclasses import dataclass

from podium.domain.errors import NotPossibleNow
from podium.domain.events import ToolCompleted, ToolFailed, UsageRecorded
from podium.domain.gating import (
    CallRecord,
    CallStatus,
    Outcome,
    Permit,
    Receipt,
    ToolSpec,
    Usage,
)
from podium.domain.model import Json
from podium.domain.settling import draft_receipt, use_up
from podium.domain.spending import counts_of
from podium.ports import Checkpoint, Clock, Tx
from podium.tools.earlier import abandon, approval_of
from podium.tools.judging import SpecLookup
from podium.tools.reversing import give_up_reversal

_OPEN = (CallStatus.REQUESTED, CallStatus.IN_DOUBT)
_CLOSED = (CallStatus.COMPLETED, CallStatus.FAILED, CallStatus.ABANDONED)


@dataclass(frozen=True)
class Settler:
    """Writes receipts. A call in doubt may still be settled: whoever acted knows how it ended."""

    specs: SpecLookup
    clock: Clock

    def settle(
        self, tx: Tx, permit: Permit, outcome: Outcome, checkpoint: Checkpoint | None
    ) -> Receipt:
        record = _record_of(tx, permit)
        if record.status in _CLOSED:
            if checkpoint is not None and record.outcome is not None:
                # The step is still recorded, with the outcome that was kept.
                checkpoint(tx, record.outcome)
            return _receipt_of(tx, record)
        if record.status not in _OPEN:
            raise NotPossibleNow(
                f"call {record.key} is {record.status}, so it cannot be settled; request it again"
            )
        receipt = self._close(tx, record, outcome)
        if checkpoint is not None:
            checkpoint(tx, outcome)
        return receipt

    def abandon(self, tx: Tx, permit: Permit) -> Receipt:
        record = _record_of(tx, permit)
        if record.status in _CLOSED:
            return _receipt_of(tx, record)
        if record.status is not CallStatus.REQUESTED or not record.observed:
            raise NotPossibleNow(
                f"call {record.key} cannot be abandoned: only an open call that a CLI performs can; "
                "settle it"
            )
        return abandon(tx, self.clock.now(), record)

    def _close(self, tx: Tx, record: CallRecord, outcome: Outcome) -> Receipt:
        now = self.clock.now()
        spec = self.specs(record.tool)
        approval = approval_of(tx, record)
        draft = draft_receipt(
            record,
            "completed" if outcome.ok else "failed",
            now,
            outcome=outcome,
            approval=approval,
            fields=_fields(spec, outcome),
            undo=_undo(spec, outcome),
        )
        receipt = tx.add_receipt(draft)
        tx.append(record.run_id, _ended(record, outcome, receipt))
        use_up(tx, record, approval, receipt)
        if not outcome.ok:
            give_up_reversal(tx, record, now)
        self._count_usage(tx, record, outcome.usage)
        update = {
            "status": CallStatus.COMPLETED if outcome.ok else CallStatus.FAILED,
            "outcome": outcome,
            "receipt_number": receipt.number,
            "settled_at": now,
        }
        tx.save_call(record.model_copy(update=update))
        return receipt

    def _count_usage(self, tx: Tx, record: CallRecord, usage: Usage) -> None:
        now = self.clock.now()
        counts = list(counts_of(usage, record.run_id, record.step_key, now))
        for counter, amount in counts:
            tx.count(counter, now, amount)
        if counts:
            tx.append(record.run_id, UsageRecorded(source=f"tool:{record.tool}", usage=usage))


def _record_of(tx: Tx, permit: Permit) -> CallRecord:
    record = tx.call(permit.call.key)
    if record is None or record.digest != permit.digest:
        raise NotPossibleNow(
            f"call {permit.call.key} was not permitted as it is being settled; request it again"
        )
    return record


def _receipt_of(tx: Tx, record: CallRecord) -> Receipt:
    for receipt in tx.receipts(record.run_id):
        if receipt.number == record.receipt_number:
            return receipt
    raise NotPossibleNow(
        f"receipt {record.receipt_number} of call {record.key} is gone from the store; "
        "`podium receipts verify` says more"
    )


def _ended(record: CallRecord, outcome: Outcome, receipt: Receipt) -> ToolCompleted | ToolFailed:
    if outcome.ok:
        return ToolCompleted(
            call=record.key,
            tool=record.tool,
            result=outcome.result,
            seconds=outcome.duration_seconds,
            receipt=receipt.number,
        )
    return ToolFailed(
        call=record.key,
        tool=record.tool,
        error=outcome.error,
        result=outcome.result,
        seconds=outcome.duration_seconds,
        receipt=receipt.number,
    )


def _fields(spec: ToolSpec | None, outcome: Outcome) -> dict[str, Json]:
    if spec is None or not isinstance(outcome.result, dict):
        return {}
    return {name: outcome.result[name] for name in spec.receipt_fields if name in outcome.result}


def _undo(spec: ToolSpec | None, outcome: Outcome) -> dict[str, Json] | None:
    """The reversing call, when the handler put its arguments under `undo`."""
    if spec is None or spec.undo is None or not outcome.ok or not isinstance(outcome.result, dict):
        return None
    arguments = outcome.result.get("undo")
    return {"tool": spec.undo, "arguments": arguments} if isinstance(arguments, dict) else None
