"""Candidates that are over although nobody answered: done by hand, or of a dry run that has passed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from podium.domain.approving import mark_expired
from podium.domain.errors import NotPossibleNow
from podium.domain.gating import ApprovalStatus
from podium.domain.orders import Ack
from podium.domain.terms import Mode, terms_of
from podium.domain.work import Run, RunStatus
from podium.flows.sense.kit import SENSE
from podium.flows.sense.standings import AT_REST
from podium.ports import Engine, Store, Tx, View

Answered = Callable[[str], Ack | None]
"""What the worker said of an order, by its id. May block."""

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
                f"it was moved by hand, and the worker answered: {done.status}",
            )
        elif terms_of(run).mode == "dry-run" and mode in REAL_MODES:
            why = f"it was of a dry run, which delivers nothing; now the mode is {mode}, and it is proposed anew"
            anew |= await _end(engine, store, run.id, why)
    return anew


def _resting(view: View, run_ids: list[str]) -> list[Run]:
    found = (view.run(run_id) for run_id in run_ids)
    return [run for run in found if run is not None and run.status in AT_REST]


def _answer_to(run: Run, answered: Answered) -> Ack | None:
    ack = None
    with suppress(NotPossibleNow, OSError):  # a folder that cannot be read tells nothing
        ack = answered(run.input["wo_id"])
    # One from before it was proposed is of another order with its name.
    return ack if ack is not None and ack.finished_at >= run.created_at else None


async def _end(engine: Engine, store: Store, run_id: str, why: str) -> bool:
    """Whether it was ended. False: it has just come to an end of its own, or takes its time."""
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


def _withdraw(tx: Tx, run_id: str) -> None:
    for approval in tx.approvals(run_id=run_id, statuses=(ApprovalStatus.PENDING,)):
        # There is nothing left to say yes to, so its time has come.
        mark_expired(tx, approval, approval.deadline)
