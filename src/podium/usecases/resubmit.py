"""A person changes what they were asked about: the old question is rejected, and a new one comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from podium.domain.approvals import Approver
from podium.domain.approving import approver_of
from podium.domain.approving import reject as rejected_approval
from podium.domain.gating import Approval
from podium.domain.model import Noun
from podium.domain.work import Run
from podium.ports import Clock, Ids, Store, Tx
from podium.usecases.approve import open_approval, refuse_expired
from podium.usecases.list_approvals import show_approval
from podium.usecases.reject import store_rejection

Begin = Callable[[str, Callable[[Tx], None]], Awaitable[Run]]
"""Stores the run of the edited work under this id, and does the rest in the very transaction."""


class Resubmitted(Noun):
    """The old question, and the run that asks the new one."""

    approval: Approval
    run: Run


async def resubmit(
    store: Store, clock: Clock, ids: Ids, approval: str, *, by: Approver | str, begin: Begin
) -> Resubmitted:
    """Reject the approval as edited, and begin the edited work as a run of its own.

    Both are one transaction: wherever a process ends, the question is open still, or the edit is asked
    about. Raises `NotPossibleNow` when somebody answered first.
    """
    run_id = ids.new("run")
    known = refuse_expired(await show_approval(store, clock, approval))
    run = await begin(run_id, lambda tx: _reject(tx, clock, ids, known.id, by, run_id))
    return Resubmitted(approval=await show_approval(store, clock, known.id), run=run)


def _reject(tx: Tx, clock: Clock, ids: Ids, approval: str, by: Approver | str, run_id: str) -> None:
    now = clock.now()
    why = f"edited by {approver_of(by).name}; goes on as {run_id}"
    rejected = rejected_approval(open_approval(tx, approval, now), by, now, why).model_copy(
        update={"edited_into": run_id}
    )
    store_rejection(tx, rejected, now, ids)
