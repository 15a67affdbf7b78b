"""Control of runs: cancel, resume, retry from a step, resolve a call in doubt."""

from __future__ import annotations

from datetime import datetime

from podium.app.id_lookup import find_id
from podium.core.decisions import CallOutcome, CallRecord, CallStatus
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.events import ToolCompleted, ToolResolved
from podium.core.settlement import draft_receipt, give_back, use_up
from podium.core.work import Run
from podium.ports import Clock, Engine, Store, StoreView, Transaction


async def cancel(store: Store, engine: Engine, run: str, *, by: str, why: str = "") -> Run:
    """Wish a run ended, whichever process hosts it. The wish is durable on return."""
    run_id = await store.read(lambda view: find_id(view, "run", run))
    return await engine.cancel(run_id, by=by, why=why)


async def resume(store: Store, engine: Engine, run: str, *, note: str = "", by: str = "") -> Run:
    """Host the run in this process. Raises `LockHeld` while another one does.

    `note` is guidance for a run that asked a person.
    """
    run_id = await store.read(lambda view: find_id(view, "run", run))
    return await engine.resume(run_id, note=note, by=by)


async def see_through(engine: Engine, run: Run, *, wait: bool = False) -> Run:
    """Stay until the hosted run ended or needs a person; without `wait` also until it waits for somebody.

    A run that only lets time pass goes on by itself and is stayed with.
    """
    return await engine.finish(run.id, stop_when_waiting=not wait)


async def retry(
    store: Store, engine: Engine, run: str, *, from_step: str | None = None, by: str
) -> Run:
    """Forget a step and all after it, and host the run here. Without a step: from what failed."""
    run_id = await store.read(lambda view: _checked(view, run, from_step))
    return await engine.retry(run_id, from_step=from_step, by=by)


def _checked(view: StoreView, run: str, from_step: str | None) -> str:
    run_id = find_id(view, "run", run)
    if from_step is not None:
        keys = [step.key for step in view.steps(run_id)]
        if from_step not in keys:
            raise BadInput(
                f"run {run_id} has no step {from_step!r}; its steps: {', '.join(keys) or 'none'}"
            )
    return run_id


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


def _resolve(
    tx: Transaction, call_key: str, *, happened: bool, by: str, now: datetime
) -> CallRecord:
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


def _completed(tx: Transaction, record: CallRecord, by: str, now: datetime) -> CallRecord:
    outcome = CallOutcome(ok=True, result={"resolved_by": by})
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


def _undone(tx: Transaction, record: CallRecord) -> CallRecord:
    """A refused call is judged anew when it is requested again."""
    give_back(tx, record, tx.approval(record.approval_id) if record.approval_id else None)
    return record.model_copy(update={"status": CallStatus.REFUSED})
