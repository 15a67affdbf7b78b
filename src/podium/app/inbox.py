"""Inbox of everything that waits for a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from podium.app.approvals import QUESTION, list_approvals, show_approval
from podium.app.run_continuation import left_alone
from podium.app.run_list import RunListing, ShownStatus, list_by_status
from podium.core.approvals import Approver
from podium.core.decisions import (
    Approval,
    ApprovalStatus,
    CallRecord,
    CallStatus,
    Tier,
    usage_counter,
)
from podium.core.errors import NotPossibleNow
from podium.core.events import ApprovalRejected
from podium.core.job import job_of_flow, load_part, load_parts
from podium.core.model import FrozenModel, Json, UtcDatetime
from podium.core.plan_approval import SqlQuery, question_in
from podium.core.work import Run
from podium.ports import Clock, Engine, EventQuery, Store, StoreView

if TYPE_CHECKING:
    from podium.app.app import Podium

MAX_CARDS = 100
"""Shown at once; the rest is counted."""
MAX_LOOKED_AT = 5_000
MAX_BLOCKED = 100
STUCK = (ShownStatus.NEEDS_HUMAN, ShownStatus.INTERRUPTED)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class CardKind(StrEnum):
    """Subject of a request for a person."""

    QUESTION = "question"
    CANDIDATE = "candidate"
    PLAN = "plan"
    CALL = "call"


class Answer(FrozenModel):
    """Answer to an approval: by whom, when, and with which comment."""

    by: str = ""
    at: UtcDatetime | None = None
    words: str = ""
    how: str = ""
    """Authentication of the person as text; empty where it was not recorded."""


class Card(FrozenModel):
    """One approval with what a person needs to answer it."""

    approval: Approval
    kind: CardKind
    run: Run | None = None
    """The run that asks. None: it was deleted."""
    agent: str = ""
    role: str = ""
    spent_usd: float = 0.0
    """Cost of the run so far."""
    answer: Answer = Answer()

    @property
    def is_open(self) -> bool:
        return self.approval.status is ApprovalStatus.PENDING


class OrderOperation(FrozenModel):
    """One operation of an order, with the call that it is."""

    line: str
    tool: str
    arguments: dict[str, Json]


class OrderSummary(FrozenModel):
    """A work order that an approval hands over."""

    id: str
    title: str
    target: str = ""
    zones: tuple[str, ...] = ()
    priority: str = "medium"
    summary: str = ""
    tasks: tuple[str, ...] = ()
    operations: tuple[OrderOperation, ...] = ()


class EditField(FrozenModel):
    """One field that can be edited."""

    name: str
    label: str
    text: str


class Resubmitted(FrozenModel):
    """The old question, and the run that asks the new one."""

    approval: Approval
    run: Run


class JobApprovals:
    """Approvals that runs of a job ask for: their names, what is shown of them, and how they are edited.

    As it is, an approval is for a call of an agent. A job whose runs ask for more has a class of its own.
    """

    kinds: Mapping[str, CardKind] = MappingProxyType({})
    """Flow → kind of what its runs ask about."""

    def find(self, view: StoreView, text: str) -> str:
        """Id of the approval that another id of the job stands for; empty when there is none. Raises `AmbiguousId`."""
        return ""

    def order(self, approval: Approval) -> OrderSummary | None:
        """The work order that it hands over."""
        return None

    def verifications(self, card: Card) -> Mapping[int, Sequence[SqlQuery]]:
        """Number of a planned call → statements to verify it with."""
        return {}

    def why_not_editable(self, card: Card) -> str:
        """Reason why it cannot be edited; empty when it can."""
        return "it is not a plan of the operator" if card.kind is CardKind.PLAN else ""

    def edit_fields(self, card: Card) -> tuple[EditField, ...] | None:
        """The texts as they are; None: those of an agent's call."""
        return None

    async def resubmit(
        self, podium: Podium, card: Card, texts: Mapping[str, str], by: Approver
    ) -> Resubmitted:
        """Reject the question as edited, and begin a run that asks the new one. Raises `BadInput`."""
        raise NotPossibleNow(f"approval {card.approval.id} cannot be edited")

    async def next_step(self, podium: Podium, run: Run, *, granted: bool) -> str | None:
        """Next step for a person after an answer; None: as with any run."""
        return None


def job_approvals(run: Run | None) -> JobApprovals:
    """Handling of the approvals of a run's job."""
    kind: type[JobApprovals] | None = load_part(job_of_flow(run.flow) if run else None, "approvals")
    return (kind or JobApprovals)()


def resolve_approval(view: StoreView, text: str) -> str:
    """The id of the approval that a text means by another id, such as that of a work order; any other text as it is.

    Raises `AmbiguousId` for a beginning of several.
    """
    if view.find_ids("approval", text.strip()):
        return text
    ids = (kind().find(view, text) for _, kind in load_parts("approvals"))
    return next(filter(None, ids), text)


class Blocked(FrozenModel):
    """A run that goes on only when a person does something."""

    run: Run
    reason: str = ""
    interrupted: bool = False
    """The process that hosted it is gone."""
    in_doubt: tuple[CallRecord, ...] = ()
    """Calls of which nobody knows whether they happened."""

    @property
    def tier(self) -> Tier:
        return max((call.decision.tier for call in self.in_doubt), default=Tier.T0)


class Inbox(FrozenModel):
    """All that waits at one moment, the highest risk first."""

    cards: tuple[Card, ...] = ()
    more: int = 0
    """Cards of less risk that are not shown."""
    blocked: tuple[Blocked, ...] = ()

    @property
    def count(self) -> int:
        return len(self.cards) + self.more + len(self.blocked)


async def see_inbox(store: Store, clock: Clock, engine: Callable[[], Awaitable[Engine]]) -> Inbox:
    """Cards by tier and then by deadline, and the runs that are stuck."""
    await list_approvals(store, clock)  # marks those whose deadline has passed
    stuck = await list_by_status(store, engine, STUCK, limit=MAX_BLOCKED)
    left = [Blocked(run=run, reason=reason) for run, reason in await left_alone(store, engine)]

    def look(view: StoreView) -> Inbox:
        pending = view.approvals(statuses=(ApprovalStatus.PENDING,), limit=MAX_LOOKED_AT)
        first = sorted(pending, key=_urgency)[:MAX_CARDS]
        return Inbox(
            cards=tuple(card_of(view, approval) for approval in first),
            more=len(pending) - len(first),
            blocked=_by_risk([*(_blocked(view, listing) for listing in stuck), *left]),
        )

    return await store.read(look)


async def see_card(store: Store, clock: Clock, approval: str) -> Card:
    """One card, answered or not. Raises `UnknownId` or `AmbiguousId`."""
    record = await show_approval(store, clock, approval)
    return await store.read(lambda view: card_of(view, record))


def card_of(view: StoreView, approval: Approval) -> Card:
    """The approval with what the record knows of who asks and who answered."""
    run, call = view.run(approval.run_id), view.call(approval.call_key)
    counter = usage_counter("usd", "run", approval.run_id, "", view.now())
    return Card(
        approval=approval,
        kind=_kind(approval, run),
        run=run,
        agent=call.agent if call else "",
        role=call.role if call else "",
        spent_usd=view.counted(counter, _BEGINNING),
        answer=_answer(view, approval),
    )


def _kind(approval: Approval, run: Run | None) -> CardKind:
    if approval.tool == QUESTION:
        return CardKind.QUESTION
    if run is not None and (kind := job_approvals(run).kinds.get(run.flow)):
        return kind
    return CardKind.CALL if question_in(approval) is None else CardKind.PLAN


def _answer(view: StoreView, approval: Approval) -> Answer:
    if approval.status is ApprovalStatus.PENDING:
        return Answer()
    if approval.status is ApprovalStatus.EXPIRED:
        return Answer(words=approval.why) if approval.why else Answer(at=approval.deadline)
    if approval.status is not ApprovalStatus.REJECTED:
        last = approval.grants[-1] if approval.grants else None
        by, at = (last.by, last.at) if last else ("", None)
        return Answer(by=by, at=at, words=approval.said, how=last.how if last else "")
    query = EventQuery(run_id=approval.run_id, types=("approval_rejected",))
    times = [
        event.at
        for event in view.events(query)
        if isinstance(event.body, ApprovalRejected) and event.body.approval_id == approval.id
    ]
    at = times[-1] if times else None
    how = approval.rejected_how.replace("_", " ")
    return Answer(by=approval.rejected_by, at=at, words=approval.why, how=how)


def _urgency(approval: Approval) -> tuple[int, datetime]:
    return (-approval.tier, approval.deadline)


def _blocked(view: StoreView, listing: RunListing) -> Blocked:
    run = listing.run
    reason = run.failure.message if run.failure else ""
    if listing.interrupted:
        goes_on = f"; a worker of queue {run.queue!r} continues it" if run.queue else ""
        reason = f"the process that hosted it is gone{goes_on}"
    return Blocked(
        run=run,
        reason=reason,
        interrupted=listing.interrupted,
        in_doubt=tuple(view.calls(run.id, CallStatus.IN_DOUBT)),
    )


def _by_risk(blocked: Sequence[Blocked]) -> tuple[Blocked, ...]:
    return tuple(sorted(blocked, key=lambda run: -run.tier))
