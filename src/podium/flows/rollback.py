"""Rollback of a turn's calls: their workspace was put back to where the turn began, so they count as not made."""

from __future__ import annotations

from datetime import datetime

from podium.domain.events import ToolAbandoned
from podium.domain.gating import CallRecord, CallStatus
from podium.domain.settling import draft_receipt, give_back
from podium.domain.work import Run
from podium.ports import Clock, Store, Tx, View

ROLLED_BACK = "rolled back with its workspace to where the turn began"
"""Error on the receipt of a call whose effects are gone."""
_OPEN = (CallStatus.REQUESTED, CallStatus.IN_DOUBT)
_MADE = (*_OPEN, CallStatus.COMPLETED, CallStatus.FAILED)


async def roll_back_calls(store: Store, clock: Clock, run: Run, step_key: str) -> int:
    """Close the disposable calls of a step, each with a receipt that says so; gives how many there were.

    Only when the workspace is as it was before them. Asked for again, such a call is judged and made anew. Any
    other open call may have had an effect elsewhere and stays a matter for a person. What was used stays counted.
    """
    if not await store.read(lambda view: _disposable(view, run.id, step_key)):
        return 0

    def work(tx: Tx) -> int:
        tx.guard(run.id, run.fence)
        records = _disposable(tx, run.id, step_key)
        for record in records:
            _roll_back(tx, record, clock.now())
        return len(records)

    return await store.write(work)


def _disposable(view: View, run_id: str, step_key: str) -> list[CallRecord]:
    return [
        record
        for record in view.calls(run_id)
        if record.step_key == step_key
        and record.disposable
        and not record.observed
        and record.status in _MADE
    ]


def _roll_back(tx: Tx, record: CallRecord, now: datetime) -> None:
    approval = tx.approval(record.approval_id) if record.approval_id else None
    draft = draft_receipt(record, "rolled_back", now, approval=approval)
    receipt = tx.add_receipt(draft.model_copy(update={"error": ROLLED_BACK}))
    tx.append(
        record.run_id,
        ToolAbandoned(call=record.key, tool=record.tool, receipt=receipt.number, rolled_back=True),
    )
    if record.status in _OPEN:
        # Whatever it had done is undone, so the yes that it held was not used.
        give_back(tx, record, approval)
    update = {
        "status": CallStatus.ABANDONED,
        "outcome": None,
        "receipt_number": receipt.number,
        "settled_at": now,
    }
    tx.save_call(record.model_copy(update=update))
