"""`ToolDoor`: request and settle, and the second transaction, which records how a permitted call ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podium.core.decisions import (
    Call,
    CallOutcome,
    CallRecord,
    CallStatus,
    Permit,
    Receipt,
    Refusal,
    ToolSpec,
    Usage,
    counts_of,
)
from podium.core.errors import CallInDoubt, NotPossibleNow
from podium.core.events import ToolCompleted, ToolFailed, UsageRecorded
from podium.core.model import Json
from podium.core.processes import FolderConfinement
from podium.core.settlement import draft_receipt, use_up
from podium.platform.completion import in_thread
from podium.ports import Checkpoint, Clock, Gate, Ids, Store, Transaction
from podium.tools.builtin.file_edits import overwrite_diff
from podium.tools.call_replay import abandon, approval_of
from podium.tools.door_call import DoorSettings, give_up_reversal
from podium.tools.door_request import DiffMissing, RequestJudge, SpecLookup
from podium.tools.output_text import OutputCleaner, clean_outcome

_OPEN = (CallStatus.REQUESTED, CallStatus.IN_DOUBT)
_CLOSED = (CallStatus.COMPLETED, CallStatus.FAILED, CallStatus.ABANDONED)


@dataclass(frozen=True)
class Settler:
    """Writes receipts. A call in doubt may still be settled: whoever acted knows how it ended."""

    specs: SpecLookup
    clock: Clock

    def settle(
        self, tx: Transaction, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None
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

    def abandon(self, tx: Transaction, permit: Permit) -> Receipt:
        record = _record_of(tx, permit)
        if record.status in _CLOSED:
            return _receipt_of(tx, record)
        if record.status is not CallStatus.REQUESTED or not record.observed:
            raise NotPossibleNow(
                f"call {record.key} cannot be abandoned: only an open call that a CLI performs can be; settle it"
            )
        return abandon(tx, self.clock.now(), record)

    def _close(self, tx: Transaction, record: CallRecord, outcome: CallOutcome) -> Receipt:
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

    def _count_usage(self, tx: Transaction, record: CallRecord, usage: Usage) -> None:
        now = self.clock.now()
        counts = list(counts_of(usage, record.run_id, record.step_key, now))
        for counter, amount in counts:
            tx.count(counter, now, amount)
        if counts:
            tx.append(record.run_id, UsageRecorded(source=f"tool:{record.tool}", usage=usage))


def _record_of(tx: Transaction, permit: Permit) -> CallRecord:
    record = tx.call(permit.call.key)
    if record is None or record.digest != permit.digest:
        raise NotPossibleNow(
            f"call {permit.call.key} differs from the call that was permitted; request it again"
        )
    return record


def _receipt_of(tx: Transaction, record: CallRecord) -> Receipt:
    for receipt in tx.receipts(record.run_id):
        if receipt.number == record.receipt_number:
            return receipt
    raise NotPossibleNow(
        f"receipt {record.receipt_number} of call {record.key} is missing from the store; run `podium receipts verify`"
    )


def _ended(
    record: CallRecord, outcome: CallOutcome, receipt: Receipt
) -> ToolCompleted | ToolFailed:
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


def _fields(spec: ToolSpec | None, outcome: CallOutcome) -> dict[str, Json]:
    if spec is None or not isinstance(outcome.result, dict):
        return {}
    return {name: outcome.result[name] for name in spec.receipt_fields if name in outcome.result}


def _undo(spec: ToolSpec | None, outcome: CallOutcome) -> dict[str, Json] | None:
    """The reversing call, when the handler put its arguments under `undo`."""
    if spec is None or spec.undo is None or not outcome.ok or not isinstance(outcome.result, dict):
        return None
    arguments = outcome.result.get("undo")
    return {"tool": spec.undo, "arguments": arguments} if isinstance(arguments, dict) else None


class GatedDoor:
    """Every call passes here, whoever performs it. Two transactions: `request` and `settle`."""

    def __init__(
        self,
        store: Store,
        gate: Gate,
        specs: SpecLookup,
        *,
        clock: Clock,
        ids: Ids,
        settings: DoorSettings,
        redact: Callable[[str], str],
        held: Callable[[str], FolderConfinement | None] = lambda root: None,
    ) -> None:
        """`held` says how the kernel holds commands in a folder. None: only their words are judged."""
        self._store = store
        self._gate = gate
        self._settings = settings
        self._cleaner = OutputCleaner(redact)
        self._judge = RequestJudge(
            gate=gate, specs=specs, clock=clock, ids=ids, settings=settings, held=held
        )
        self._settler = Settler(specs=specs, clock=clock)

    async def request(self, call: Call) -> Permit | Refusal:
        """Judge the call. On a permit, `tool_requested` is durable and the act may begin.

        Raises `CallInDoubt` when this very call was permitted before, Podium died before its end
        was recorded, and doing it again could do it twice; `StoreFull` when its end could not be recorded.
        """
        self._store.require_space()
        try:
            answer = await self._store.write(lambda tx: self._judge.answer(tx, call))
        except DiffMissing:
            root = Path(call.root or self._settings.root)
            is_secret = any(self._gate.passed_over(use.real, str(root)) for use in call.paths)
            diff = await in_thread(
                overwrite_diff, call, root, self._cleaner.text, is_secret=is_secret
            )
            answer = await self._store.write(lambda tx: self._judge.answer(tx, call, diff))
        if isinstance(answer, CallInDoubt):
            raise answer
        return answer

    async def look_back(self, run_id: str, step_key: str) -> None:
        """Deal with calls that a crash left open in a step, before it is done again.

        Raises `CallInDoubt` when one of them may have happened and must not be done twice.
        """
        doubt = await self._store.write(lambda tx: self._judge.look_back(tx, run_id, step_key))
        if doubt is not None:
            raise doubt

    async def settle(
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None = None
    ) -> Receipt:
        """Record the end of a permitted call. A second time gives the first receipt again.

        The outcome is kept without escapes and secrets, and cut to a size. Raises
        `NotPossibleNow` when the store knows of no such permit.
        """
        cleaned = clean_outcome(outcome, self._cleaner, self._settings.result_bytes)
        return await self._store.write(
            lambda tx: self._settler.settle(tx, permit, cleaned, checkpoint)
        )

    async def abandon(self, permit: Permit) -> Receipt:
        """Close an observed call whose end nobody will learn, and use up its approval.

        A call that was settled or abandoned before keeps its receipt, which is given back. Raises
        `NotPossibleNow` for what Podium performs and when the store knows of no such permit.
        """
        return await self._store.write(lambda tx: self._settler.abandon(tx, permit))
