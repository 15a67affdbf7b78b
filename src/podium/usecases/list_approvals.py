"""Approvals; those whose deadline has passed or whose run has ended are marked as expired on the way."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.approving import approval_named_in, expire
from podium.domain.errors import UnknownId
from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.model import Noun
from podium.ports import Clock, Store, Tx, View
from podium.usecases.approve import mark_late
from podium.usecases.find_id import find_id

OPEN = (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
"""What can still expire."""
MOST_OPEN = 5_000
"""As many are looked at for their deadlines, and counted."""
MOST_LISTED = 200


class NewestApprovals(Noun):
    """The newest ones, and how many there are beside them."""

    shown: tuple[Approval, ...] = ()
    more: int = 0
    """Those that are not shown, counted up to `MOST_OPEN` in all."""


async def list_approvals(
    store: Store,
    clock: Clock,
    *,
    statuses: Sequence[ApprovalStatus] = (ApprovalStatus.PENDING,),
    run_id: str | None = None,
    before_id: str | None = None,
    limit: int = 200,
) -> list[Approval]:
    """Approvals in these states, newest first; all states when none is named.

    What is overdue, or whose run has ended, is stored as expired first. `before_id` is the last one of the page before.
    """
    await _mark_due(store, clock)
    return await store.read(
        lambda view: view.approvals(
            run_id=run_id, statuses=statuses, before_id=before_id, limit=limit
        )
    )


async def newest_approvals(
    store: Store,
    clock: Clock,
    *,
    statuses: Sequence[ApprovalStatus] = (ApprovalStatus.PENDING,),
    run_id: str | None = None,
) -> NewestApprovals:
    """As `list_approvals`, for people and programs who are told what is left out."""
    found = await list_approvals(store, clock, statuses=statuses, run_id=run_id, limit=MOST_OPEN)
    shown = tuple(found[:MOST_LISTED])
    return NewestApprovals(shown=shown, more=len(found) - len(shown))


async def show_approval(store: Store, clock: Clock, approval: str) -> Approval:
    """The one that was meant, by id, short id or `APPROVE: <id>`. Raises `UnknownId` or `AmbiguousId`."""
    await _mark_due(store, clock)
    return await store.read(lambda view: _known(view, approval_named_in(approval) or approval))


def _known(view: View, text: str) -> Approval:
    approval = view.approval(find_id(view, "approval", text))
    if approval is None:
        raise UnknownId("approval", text)
    return approval


async def _mark_due(store: Store, clock: Clock) -> None:
    now = clock.now()
    still_open, ended = await store.read(_open_and_ended)
    due = [
        approval.id
        for approval in still_open
        if expire(approval, now)
        or (approval.status is ApprovalStatus.PENDING and approval.run_id in ended)
    ]

    def mark(tx: Tx) -> None:
        for approval_id in due:
            approval = tx.approval(approval_id)
            if approval is not None:
                mark_late(tx, approval, now)

    if due:
        await store.write(mark)


def _open_and_ended(view: View) -> tuple[list[Approval], set[str]]:
    """What may be due, and the runs among theirs that have ended."""
    still_open = view.approvals(statuses=OPEN, limit=MOST_OPEN)
    runs = (view.run(run_id) for run_id in {approval.run_id for approval in still_open})
    return still_open, {run.id for run in runs if run is not None and run.status.ended}
