"""Approvals: list, approve and reject, each answer and its signal to the run in one transaction."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime

from podium.app.id_lookup import find_id
from podium.core.approval_steps import (
    approval_named_in,
    approver_of,
    close,
    expire,
    grant,
    store_expired,
)
from podium.core.approval_steps import reject as rejected_approval
from podium.core.approvals import Approver
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import ApprovalClosed, BadInput, NotPossibleNow, UnknownId
from podium.core.events import ApprovalRejected
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json
from podium.core.run_events import ApprovalGranted, SignalSent
from podium.core.work import APPROVAL_SIGNAL, Run, RunStatus, Signal
from podium.ports import Clock, Ids, Store, StoreView, Transaction

QUESTION = "ask_human"
"""The tool whose approval is an answer in words."""
MAX_ANSWER = 4_000
_NEW_PLAN = "send the request again to get a new plan and a new approval"
_ENDS = {
    RunStatus.SUCCEEDED: "succeeded",
    RunStatus.FAILED: "failed",
    RunStatus.CANCELLED: "was cancelled",
}


async def approve(
    store: Store,
    clock: Clock,
    ids: Ids,
    approval: str,
    *,
    by: Approver | str,
    groups: Mapping[str, tuple[str, ...]] | None = None,
    comment: str = "",
    digest: str = "",
) -> Approval:
    """Say yes to an approval, named by id, short id or `APPROVE: <id>`.

    `by` says who it is and how that was proved; a bare name is the word of a program of one's own.
    `digest` is that of what the person was shown, where their door knows it: a yes to anything else is refused.

    `said` are words for whoever asked; a question needs them, for they are its answer. When the answer is complete its run goes on, in whichever process hosts it. Raises
    `NotPossibleNow` when it is not open any more; one whose deadline passed or whose run has ended is
    marked expired, and the latter raises `ApprovalClosed`.
    """
    text, approver = approval_named_in(approval) or approval, approver_of(by)

    def work(tx: Transaction) -> Approval:
        now = clock.now()
        current = open_approval(tx, text, now)
        if current.status is ApprovalStatus.EXPIRED:
            return current
        if digest and digest != current.digest:
            raise NotPossibleNow(
                f"approval {current.id} does not match what you were shown; review it again, then answer"
            )
        answer = answer_to(current, comment)
        granted = grant(current, approver, now, groups).model_copy(
            update={"said": answer or current.said}
        )
        complete = granted.status is ApprovalStatus.GRANTED
        tx.save_approval(granted)
        group = granted.grants[-1].group
        body = ApprovalGranted(
            approval_id=granted.id,
            by=approver.name,
            group=group,
            complete=complete,
            said=answer,
            authentication=approver.authentication,
        )
        tx.append(granted.run_id, body)
        if complete:
            signal_run(tx, granted, approver.name, now, ids.new("sig"))
        return granted

    return refuse_expired(await store.write(work))


def answer_to(approval: Approval, comment: str) -> str:
    """The words as they are kept. Raises `BadInput` when they do not answer what is asked."""
    answer = comment.strip()
    if len(answer) > MAX_ANSWER:
        raise BadInput(
            f"the text has {len(answer)} characters, and the maximum is {MAX_ANSWER}; shorten it"
        )
    answer = "".join(char for char in answer if char.isprintable() or char in "\n\t")
    if approval.tool == QUESTION and not answer:
        raise BadInput(
            f"approval {approval.id} is a question; answer it with "
            f'`podium approve {short_id(approval.id)} --say "TEXT"`'
        )
    choices = approval.arguments.get("choices") if approval.tool == QUESTION else None
    return _chosen(approval, answer, choices) if isinstance(choices, list) else answer


def _chosen(approval: Approval, answer: str, choices: list[Json]) -> str:
    """The choice that is meant, by its words or its number, or an answer in a person's own words."""
    names = [str(choice) for choice in choices]
    fitting = [name for name in names if name.casefold() == answer.casefold()]
    if len(fitting) == 1:
        return fitting[0]
    if not answer.isdecimal():
        return answer
    if 0 < int(answer) <= len(names):
        return names[int(answer) - 1]
    # More likely a slip than an answer.
    listed = ", ".join(f"{number} {name!r}" for number, name in enumerate(names, start=1))
    raise BadInput(
        f"approval {approval.id} has no choice {answer}; answer with one of {listed}, or in your own words"
    )


def open_approval(tx: Transaction, text: str, now: datetime) -> Approval:
    """The approval that was meant; stored as expired here when its deadline has passed or its run has ended."""
    approval_id = find_id(tx, "approval", text)
    approval = tx.approval(approval_id)
    if approval is None:
        raise UnknownId("approval", text)
    return expire_late(tx, approval, now)


def expire_late(tx: Transaction, approval: Approval, now: datetime) -> Approval:
    """The approval, stored as expired when it is due or when nothing would come of an answer any more."""
    if approval.status is ApprovalStatus.PENDING:
        run = tx.run(approval.run_id)
        if run is not None and run.status.ended:
            return close(tx, approval, _why_closed(tx, approval, run))
    return store_expired(tx, approval, now)


def _why_closed(view: StoreView, approval: Approval, run: Run) -> str:
    """That its run ended, and what asks for the same again."""
    short = short_id(run.id)
    ended = (
        f"run {short} {_ENDS[run.status]} before the approval was answered, and nothing was done"
    )
    if approval.plan_hash:
        return f"{ended}; {_NEW_PLAN}"
    if run.status is not RunStatus.SUCCEEDED:
        return f"{ended}; `podium retry {short}` continues it and asks again"
    asking = [call for call in view.calls(run.id) if call.approval_id == approval.id]
    if not asking:
        return ended
    step = max(asking, key=lambda call: call.requested_at).step_key
    return f"{ended}; `podium retry {short} --from {shlex.quote(step)}` asks again"


def signal_run(tx: Transaction, approval: Approval, by: str, now: datetime, signal_id: str) -> None:
    """Wake the run that waits for this approval's answer. One that has ended takes no signals."""
    run = tx.run(approval.run_id)
    if run is None or run.status.ended:
        return
    name = f"{APPROVAL_SIGNAL}{approval.id}"
    payload = {"approval": approval.id, "status": approval.status.value, "why": approval.why}
    tx.add_signal(
        Signal(
            id=signal_id,
            run_id=approval.run_id,
            name=name,
            payload=payload,
            sent_by=by,
            sent_at=now,
        )
    )
    tx.append(approval.run_id, SignalSent(name=name, by=by))


def refuse_expired(approval: Approval) -> Approval:
    """Raise for an expired one, after the transaction that marked it was committed."""
    if approval.status is ApprovalStatus.EXPIRED:
        if approval.why:
            raise ApprovalClosed(f"approval {approval.id} is closed: {approval.why}")
        again = f"`podium resume {approval.run_id}` asks again"
        if approval.plan_hash:
            again = _NEW_PLAN
        expired = f"approval {approval.id} expired at {approval.deadline.isoformat()}"
        raise NotPossibleNow(f"{expired}, and nothing was done; {again}")
    return approval


async def reject(
    store: Store, clock: Clock, ids: Ids, approval: str, *, by: Approver | str, why: str
) -> Approval:
    """Say no to an approval. The run is told, and the agent hears `why`.

    Raises `NotPossibleNow` when it is not open any more.
    """

    def work(tx: Transaction) -> Approval:
        now = clock.now()
        current = open_approval(tx, approval, now)
        if current.status is ApprovalStatus.EXPIRED:
            return current
        return store_rejection(tx, rejected_approval(current, by, now, why), now, ids)

    return refuse_expired(await store.write(work))


def store_rejection(tx: Transaction, refused: Approval, now: datetime, ids: Ids) -> Approval:
    """Store a rejected approval with its event, and wake its run."""
    tx.save_approval(refused)
    event = ApprovalRejected(
        approval_id=refused.id,
        by=refused.rejected_by,
        why=refused.why,
        authentication=refused.rejected_how,
    )
    tx.append(refused.run_id, event)
    signal_run(tx, refused, refused.rejected_by, now, ids.new("sig"))
    return refused


OPEN = (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
"""Statuses that can still expire."""
MAX_OPEN = 5_000
"""As many are looked at for their deadlines, and counted."""
MAX_LISTED = 200


class NewestApprovals(FrozenModel):
    """The newest ones, and how many there are beside them."""

    approvals: tuple[Approval, ...] = ()
    more: int = 0
    """Those that are not shown, counted up to `MAX_OPEN` in all."""


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
    await _expire_due(store, clock)
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
    approvals = await list_approvals(store, clock, statuses=statuses, run_id=run_id, limit=MAX_OPEN)
    newest = tuple(approvals[:MAX_LISTED])
    return NewestApprovals(approvals=newest, more=len(approvals) - len(newest))


async def show_approval(store: Store, clock: Clock, approval: str) -> Approval:
    """The one that was meant, by id, short id or `APPROVE: <id>`. Raises `UnknownId` or `AmbiguousId`."""
    await _expire_due(store, clock)
    return await store.read(lambda view: _approval(view, approval_named_in(approval) or approval))


def _approval(view: StoreView, text: str) -> Approval:
    approval = view.approval(find_id(view, "approval", text))
    if approval is None:
        raise UnknownId("approval", text)
    return approval


async def _expire_due(store: Store, clock: Clock) -> None:
    now = clock.now()
    still_open, ended = await store.read(_open_and_ended)
    due = [
        approval.id
        for approval in still_open
        if expire(approval, now)
        or (approval.status is ApprovalStatus.PENDING and approval.run_id in ended)
    ]

    def expire_all(tx: Transaction) -> None:
        for approval_id in due:
            approval = tx.approval(approval_id)
            if approval is not None:
                expire_late(tx, approval, now)

    if due:
        await store.write(expire_all)


def _open_and_ended(view: StoreView) -> tuple[list[Approval], set[str]]:
    """Approvals that may be due, and the ended ones among their runs."""
    still_open = view.approvals(statuses=OPEN, limit=MAX_OPEN)
    runs = (view.run(run_id) for run_id in {approval.run_id for approval in still_open})
    return still_open, {run.id for run in runs if run is not None and run.status.ended}
