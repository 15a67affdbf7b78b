"""Status of candidates as their runs have it: which wait, which are closed unanswered, which subjects are not proposed again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from datetime import datetime, timedelta
from functools import partial

from podium.core.approval_steps import store_expired
from podium.core.decisions import ApprovalStatus
from podium.core.errors import NotPossibleNow
from podium.core.events import RunCancelRequested
from podium.core.model import Json
from podium.core.work import Mode, Run, RunStatus, run_settings_of
from podium.jobs.sense.deps import SenseDeps
from podium.jobs.sense.job import CANDIDATE, SENSE
from podium.jobs.sense.models import Candidate, CandidateStatus, Planned, PlannerStatus
from podium.jobs.sense.orders.operation_writer import writer_refusal
from podium.jobs.sense.orders.work_order import Ack
from podium.ports import (
    Engine,
    EventQuery,
    FlowContext,
    RunQuery,
    StepContext,
    Store,
    StoreView,
    Transaction,
)

AT_REST = (RunStatus.WAITING, RunStatus.NEEDS_HUMAN)
PUT_OFF = "deferred: a quota is used up, the mode was lowered or a folder is not writable; retried every five minutes"


async def statuses_of(store: Store, run: Run) -> tuple[CandidateStatus, ...]:
    """Return the statuses of a plan's candidates once none of them continues by itself."""
    if run.status is not RunStatus.SUCCEEDED or not isinstance(run.result, dict):
        return ()
    runs: dict[str, str] = run.result["runs"]
    held: dict[str, str] = run.result["held_back"]
    planned = Planned.model_validate(run.result["planned"])
    withheld = [
        CandidateStatus(
            wo_id=candidate.wo_id,
            state="held back",
            why=held[candidate.wo_id],
            title=candidate.suggestion.title,
            target=candidate.item.target,
        )
        for candidate in planned.plan.candidates
        if candidate.wo_id in held
    ]
    return (*await at_rest(store, runs), *withheld)


async def at_rest(store: Store, runs: dict[str, str]) -> list[CandidateStatus]:
    statuses: list[CandidateStatus | None] = []
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            statuses = await store.read(lambda view: _looked_at(view, runs))
            if all(status is not None for status in statuses):
                break
    return [status for status in statuses if status is not None]


def _looked_at(view: StoreView, runs: dict[str, str]) -> list[CandidateStatus | None]:
    resting_runs = [view.run(run_id) for run_id in runs.values()]
    # One that the record has forgotten has ended long ago.
    return [status_of(view, run) for run in resting_runs if run is not None]


def status_of(view: StoreView, run: Run) -> CandidateStatus | None:
    """Return a candidate's status, read from its run; None while it continues by itself."""
    status = _status(view, run)
    if status is None:
        return None
    return status.model_copy(update={"cannot": writer_refusal(view, run.id)})


def _status(view: StoreView, run: Run) -> CandidateStatus | None:
    if run.status is RunStatus.SUCCEEDED:
        return CandidateStatus.model_validate(run.result)
    order: dict[str, Json] = run.input["order"]
    asked = view.approvals(run_id=run.id)
    weighed = asked[0].arguments if asked else {}
    common = {
        "wo_id": run.input["wo_id"],
        "run_id": run.id,
        "title": order.get("title", ""),
        "target": order.get("target", ""),
        "approval_id": asked[0].id if asked else "",
        "tier": weighed.get("tier", ""),
        "zones": tuple(weighed.get("zones", ())),
    }
    if run.status in AT_REST:
        why = PUT_OFF if run.only_sleeps else f"waits for {run.waiting_for}"
        if _is_gone(view, run):
            why = f"{why}; the newest plan no longer asks for it"
        return CandidateStatus(state="waiting", why=why, **common)
    if run.status is RunStatus.CANCELLED:
        return CandidateStatus(state="expired", why=_why_cancelled(view, run), **common)
    if run.status.ended:
        why = run.failure.message if run.failure else str(run.status)
        return CandidateStatus(state="refused", why=why, **common)
    return None


def _is_gone(view: StoreView, run: Run) -> bool:
    """True if the newest plan of a planner that answered does not ask for its subject any more."""
    for newest in view.runs(RunQuery(flow=SENSE, statuses=(RunStatus.SUCCEEDED,), limit=1)):
        planned: dict[str, Json] = newest.result["planned"]
        if planned["status"] != PlannerStatus.OK or newest.created_at <= run.created_at:
            return False
        asked = (Candidate.model_validate(document) for document in planned["plan"]["candidates"])
        return run.input["subject"] not in {candidate.subject for candidate in asked}
    return False


def _why_cancelled(view: StoreView, run: Run) -> str:
    wished = view.events(EventQuery(run_id=run.id, types=("run_cancel_requested",)))
    for event in wished:
        if isinstance(event.body, RunCancelRequested):
            return event.body.why or f"cancelled by {event.body.by}"
    return str(run.status)


Answered = Callable[[str], Ack | None]
"""Reads the worker's answer to an order, by its id. May block."""

GRACE_SECONDS = 10.0
"""So long a process that hosts a run may take to end it; then the next tick sees the end."""
REAL_MODES = ("supervised", "autonomous")


async def close_what_is_over(
    engine: Engine, store: Store, run_ids: Iterable[str], *, answered: Answered, mode: Mode
) -> bool:
    """End the runs of candidates that nothing can become of, so that their subjects are free.

    True: one of a dry run was ended for a higher mode, and is to be proposed anew.
    """
    ids = [*run_ids]
    anew = False
    for run in await store.read(lambda view: _resting(view, ids)):
        done = await asyncio.to_thread(_answer_to, run, answered)
        if done is not None:
            await _end(
                engine,
                store,
                run.id,
                f"moved by hand; the worker answered: {done.status}",
            )
        elif run_settings_of(run).mode == "dry-run" and mode in REAL_MODES:
            why = f"it belonged to a dry run, which delivers nothing; the mode is now {mode}, so it is proposed again"
            anew |= await _end(engine, store, run.id, why)
    return anew


def _resting(view: StoreView, run_ids: list[str]) -> list[Run]:
    resting_runs = (view.run(run_id) for run_id in run_ids)
    return [run for run in resting_runs if run is not None and run.status in AT_REST]


def _answer_to(run: Run, answered: Answered) -> Ack | None:
    ack = None
    with suppress(NotPossibleNow, OSError):  # a folder that cannot be read tells nothing
        ack = answered(run.input["wo_id"])
    # One from before it was proposed is of another order with its name.
    return ack if ack is not None and ack.finished_at >= run.created_at else None


async def _end(engine: Engine, store: Store, run_id: str, why: str) -> bool:
    """Cancel the run. True if it was ended; False if it ended by itself or takes longer than the grace period."""
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            with suppress(NotPossibleNow):
                await engine.cancel(run_id, by=SENSE, why=why)
            ended = (await engine.finish(run_id)).status is RunStatus.CANCELLED
    except TimeoutError:
        return False
    if ended:
        await store.write(lambda tx: _withdraw(tx, run_id))
    return ended


def _withdraw(tx: Transaction, run_id: str) -> None:
    for approval in tx.approvals(run_id=run_id, statuses=(ApprovalStatus.PENDING,)):
        # There is nothing left to say yes to, so its time has come.
        store_expired(tx, approval, approval.deadline)


MAX_LOOKED_AT = 1_000
SETTLED = ("delivered", "rejected", "approved")


async def held_back(
    ctx: FlowContext, deps: SenseDeps, candidates: Sequence[Candidate]
) -> dict[str, str]:
    """Candidates that are not put forward now, each with why."""
    if not candidates:
        return {}

    async def look(step: StepContext) -> dict[str, str]:
        return await deps.store.read(partial(_withheld_reasons, deps, candidates))

    return await ctx.step("held-back", look)


def _withheld_reasons(
    deps: SenseDeps, candidates: Sequence[Candidate], view: StoreView
) -> dict[str, str]:
    since = view.now() - timedelta(seconds=deps.options.again_seconds)
    newest: dict[str, Run] = {}
    for run in view.runs(RunQuery(flow=CANDIDATE, limit=MAX_LOOKED_AT)):
        if isinstance(run.input, dict):
            newest.setdefault(str(run.input.get("subject")), run)
    reasons = {
        candidate.wo_id: _why(newest[candidate.subject], since)
        for candidate in candidates
        if candidate.subject in newest
    }
    return {wo_id: why for wo_id, why in reasons.items() if why}


def _why(run: Run, since: datetime) -> str:
    wo_id = run.input.get("wo_id")
    if not run.status.ended:
        return f"{wo_id} about the same subject is already waiting"
    state = run.result.get("state", "") if isinstance(run.result, dict) else ""
    if state in SETTLED and run.finished_at is not None and run.finished_at > since:
        return f"{wo_id} about the same subject was recently {state}"
    return ""
