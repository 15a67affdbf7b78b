"""Cards: what waits for a person, as its page shows it. Nothing that a yes is bound to is left out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from podium.domain.gating import ApprovalStatus, Tier, canonical_json
from podium.domain.model import Json
from podium.domain.operating import OperatorJob, SqlQuery
from podium.domain.orders import WorkOrder
from podium.domain.plan_question import question_in
from podium.flows.operator import OPERATOR
from podium.flows.operator.exact import exact_lines
from podium.telling.approval_words import waits_for, what_lines
from podium.telling.untrusted import shown_line
from podium.telling.wording import counted
from podium.usecases import Blocked, Card, CardKind
from podium.web.access.people import ConsoleRole, Person
from podium.web.pages.inbox_changes import MOST_LINES, Change, changes_in, changes_of
from podium.web.pages.rendering import money, span
from podium.wiring.order_editing import order_in
from podium.wiring.resubmitting import cannot_be_edited
from podium.wiring.submitting import asked_by

HIGHEST_TOGETHER = Tier.T2
"""What leaves the machine, or cannot be taken back, is answered one by one."""
MOST_EXACT = 80
_TITLES = {
    CardKind.QUESTION: "Question",
    CardKind.CANDIDATE: "Work order",
    CardKind.PLAN: "Plan",
    CardKind.CALL: "Call",
}


@dataclass(frozen=True)
class PlannedCall:
    """One call of a plan."""

    number: int
    tool: str
    tier: Tier
    lines: tuple[str, ...]
    way_back: str
    is_final: bool
    proofs: tuple[SqlQuery, ...] = ()
    """Read-only statements by which one can look for oneself."""
    marks: tuple[str, ...] = ()
    """What of it was not in the message."""


@dataclass(frozen=True)
class Link:
    """One place in the chain of those who must say yes."""

    group: str
    by: str = ""
    how: str = ""
    is_next: bool = False


@dataclass(frozen=True)
class ShownCard:
    """A card as the template takes it."""

    card: Card
    what: str
    title: str
    exact: tuple[str, ...]
    exact_left_out: int = 0
    question: str = ""
    choices: tuple[str, ...] = ()
    command: str = ""
    beside: tuple[str, ...] = ()
    """What the command is given beside its words."""
    changes: tuple[Change, ...] = ()
    calls: tuple[PlannedCall, ...] = ()
    order: WorkOrder | None = None
    asked_by: str = ""
    forecast: str = ""
    chain: tuple[Link, ...] = ()
    why_not: str = ""
    """Why this person cannot say yes; empty when they can."""
    may_answer: bool = False
    no_edit: str = ""
    together: bool = False
    """Whether it may be answered together with others of its tier."""
    whole: bool = False
    next: str = ""
    """What is left to a person so that the answered run goes on; empty when it does by itself."""

    @property
    def version(self) -> str:
        """Changes exactly when the card says something else."""
        return f"{self.card.approval.status}-{len(self.card.approval.grants)}"


@dataclass(frozen=True)
class ShownBlocked:
    """A run that is stuck, as the template takes it."""

    blocked: Blocked
    calls: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Of calls in doubt: key, tool and arguments."""
    may_resolve: bool
    may_resume: bool

    @property
    def version(self) -> str:
        run = self.blocked.run
        return f"{run.status}-{run.fence}-{len(self.calls)}-{int(self.blocked.interrupted)}"


def shown_card(
    card: Card, person: Person, groups: Mapping[str, tuple[str, ...]], *, whole: bool = False
) -> ShownCard:
    """The card for this person; `whole` when it stands alone."""
    approval = card.approval
    exact = tuple(what_lines(approval))
    kept = exact if whole else exact[:MOST_EXACT]
    order = order_in(approval) if card.kind is CardKind.CANDIDATE else None
    most = None if whole else MOST_LINES
    may_answer = card.is_open and person.may(ConsoleRole.APPROVER)
    return ShownCard(
        card=card,
        what=_TITLES[card.kind],
        title=_title(card, order),
        exact=kept,
        exact_left_out=len(exact) - len(kept),
        question=str(approval.arguments.get("question", "")) if _asks(card) else "",
        choices=_choices(approval.arguments) if _asks(card) else (),
        command=_command(approval.arguments) if card.kind is CardKind.CALL else "",
        beside=_beside(approval.arguments),
        changes=changes_in(order, most=most) if order else _changes(card, most),
        calls=_planned(card),
        order=order,
        asked_by=asked_by(card.run) if card.run else "",
        forecast=_forecast(card),
        chain=_chain(card),
        why_not=_why_not(card, person, groups),
        may_answer=may_answer,
        no_edit=cannot_be_edited(card) if card.is_open else "it is answered",
        together=may_answer and not _asks(card) and approval.tier <= HIGHEST_TOGETHER,
        whole=whole,
    )


def shown_blocked(blocked: Blocked, person: Person) -> ShownBlocked:
    calls = tuple(
        (call.key, call.tool, tuple(exact_lines(call.arguments, indent=0)))
        for call in blocked.in_doubt
    )
    return ShownBlocked(
        blocked=blocked,
        calls=calls,
        may_resolve=person.may(ConsoleRole.APPROVER),
        may_resume=person.may(ConsoleRole.OPERATOR) and not calls,
    )


def _asks(card: Card) -> bool:
    return card.kind is CardKind.QUESTION


def _title(card: Card, order: WorkOrder | None) -> str:
    if card.kind is CardKind.QUESTION:
        return "An agent asks"
    if order is not None:
        return order.title
    question = question_in(card.approval)
    if question is not None:
        return question.message or counted(len(question.calls), "call")
    return card.approval.tool


def _choices(arguments: Mapping[str, Json]) -> tuple[str, ...]:
    choices = arguments.get("choices")
    return tuple(map(str, choices)) if isinstance(choices, list) else ()


def _command(arguments: Mapping[str, Json]) -> str:
    command = arguments.get("command")
    if isinstance(command, list):
        return shlex.join(map(str, command))
    return command if isinstance(command, str) else ""


def _beside(arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """All that a command is given beside its words: where it runs, and with what."""
    more = {name: value for name, value in arguments.items() if name != "command"}
    return tuple(
        f"{shown_line(name)}: {shown_line(canonical_json(value))}" for name, value in more.items()
    )


def _changes(card: Card, most: int | None) -> tuple[Change, ...]:
    if card.kind is not CardKind.CALL:
        return ()
    approval = card.approval
    return changes_of(approval.tool, approval.arguments, diff=approval.diff, most=most)


def _planned(card: Card) -> tuple[PlannedCall, ...]:
    question = question_in(card.approval)
    if question is None:
        return ()
    proofs = _proofs(card)
    return tuple(
        PlannedCall(
            number=call.number,
            tool=call.tool,
            tier=call.tier,
            lines=tuple(exact_lines(call.arguments, indent=0)),
            way_back=f"can be undone by {call.undo}" if call.undo else "",
            is_final=call.tool in question.irreversible,
            proofs=proofs.get(call.number, ()),
            marks=tuple(mark.line for mark in call.ungrounded),
        )
        for call in question.calls
    )


def _proofs(card: Card) -> dict[int, tuple[SqlQuery, ...]]:
    if card.run is None or card.run.flow != OPERATOR:
        return {}
    plan = OperatorJob.model_validate(card.run.input).plan
    return {step.number: step.verification for step in plan.steps}


def _forecast(card: Card) -> str:
    spent = f"its run has cost {money(card.spent_usd)} so far" if card.spent_usd else ""
    question = question_in(card.approval)
    if question is None:
        return spent or "nothing is known to be charged"
    estimate = question.estimate
    usd = money(estimate.usd) if estimate.usd else "no cost"
    told = f"{usd}, {span(estimate.seconds)}"
    return f"{told}; {spent}" if spent else told


def _chain(card: Card) -> tuple[Link, ...]:
    approval = card.approval
    given = approval.grants
    if not approval.approvers:
        return tuple(Link("anybody", grant.by, grant.how) for grant in given)
    return tuple(
        Link(group, given[place].by, given[place].how)
        if place < len(given)
        else Link(group, is_next=card.is_open and place == len(given))
        for place, group in enumerate(approval.approvers)
    )


def _why_not(card: Card, person: Person, groups: Mapping[str, tuple[str, ...]]) -> str:
    approval = card.approval
    if approval.status is not ApprovalStatus.PENDING:
        return "it is answered"
    if not person.may(ConsoleRole.APPROVER):
        return "You may look. To answer, come in with a token that has the role approver."
    if any(grant.by == person.name for grant in approval.grants):
        return "You said yes already. The next yes must come from somebody else."
    group = waits_for(approval) if approval.approvers else ""
    if group and person.name not in groups.get(group, ()):
        return f"The next yes must come from somebody of {shown_line(group)}, and you are not one of them."
    return ""
