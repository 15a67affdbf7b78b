"""A person changes what they were asked about: the old question is rejected, and a new one comes of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from podium.domain.approving import reject as rejected_approval
from podium.domain.errors import NotPossibleNow
from podium.domain.events import ApprovalRejected
from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.model import Noun
from podium.domain.work import Run
from podium.ports import Clock, Ids, Store, Tx
from podium.usecases.approve import open_approval, refuse_expired, tell_run

Begin = Callable[[str], Awaitable[Run]]
"""Stores the run of the edited work under this id. All that could be wrong with it was looked at before."""
_GOES_ON = re.compile(r"edited by .*; goes on as (?P<run>run_[0-9a-f]{32})", re.DOTALL)


class Resubmitted(Noun):
    """The old question, and the run that asks the new one."""

    approval: Approval
    run: Run


async def resubmit(
    store: Store, clock: Clock, ids: Ids, approval: str, *, by: str, begin: Begin
) -> Resubmitted:
    """Reject the approval as edited, and begin the edited work as a run of its own.

    The rejection names the run that follows. Where the process ended between the two, the same again
    begins that very run: the edit is neither lost nor done twice. Raises `NotPossibleNow` when somebody
    answered first.
    """
    run_id = ids.new("run")
    rejected = await store.write(lambda tx: _reject(tx, clock, ids, approval, by, run_id))
    refuse_expired(rejected)
    return Resubmitted(approval=rejected, run=await begin(edited_into(rejected) or run_id))


def edited_into(approval: Approval) -> str:
    """The run that an edited approval goes on as; empty when it was not edited."""
    found = _GOES_ON.fullmatch(approval.why)
    is_rejected = approval.status is ApprovalStatus.REJECTED
    return found["run"] if found and is_rejected else ""


def _reject(tx: Tx, clock: Clock, ids: Ids, text: str, by: str, run_id: str) -> Approval:
    now = clock.now()
    known = open_approval(tx, text, now)
    if known.status is ApprovalStatus.EXPIRED:
        return known
    if (begun := edited_into(known)) and tx.run(begun) is None:
        if known.rejected_by != by:
            raise NotPossibleNow(f"{known.rejected_by!r} edits approval {known.id} already")
        return known
    why = f"edited by {by}; goes on as {run_id}"
    rejected = rejected_approval(known, by, now, why)
    tx.save_approval(rejected)
    tx.append(rejected.run_id, ApprovalRejected(approval_id=rejected.id, by=by, why=why))
    tell_run(tx, rejected, by, now, ids.new("sig"))
    return rejected
