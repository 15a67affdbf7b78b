"""Cards of the inbox: everything that an approval is bound to, with file changes as a diff."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from podium.app.inbox import Blocked, Card, CardKind, OrderSummary, job_approvals
from podium.app.resubmission import cannot_be_edited
from podium.app.work_request import asked_by
from podium.core import protected_paths
from podium.core.decisions import ApprovalStatus, Tier, canonical_json
from podium.core.model import Json
from podium.core.plan_approval import SqlQuery, question_in
from podium.render.approval import (
    change_lines,
    diff_counts,
    diff_lines,
    outgoing_lines,
    waits_for,
    way_back,
    what_lines,
)
from podium.render.argument_text import exact_lines
from podium.render.text import counted, escaped_line
from podium.web.access.tokens import ConsoleRole, Person
from podium.web.pages.templates import money, span

MAX_LINES = 60
"""Lines of one change among many cards; a card alone shows all."""

MAX_COMPARED = 40_000
"""Removed times added lines that are compared; more takes quadratic time, or worse."""

LineKind = Literal["add", "del", "at", "same"]


@dataclass(frozen=True)
class ChangedLine:
    kind: LineKind
    text: str


@dataclass(frozen=True)
class Change:
    """One file with its change."""

    title: str
    lines: tuple[ChangedLine, ...] = ()
    left_out: int = 0


def changes_of(
    tool: str, arguments: Mapping[str, Json], *, diff: str = "", most: int | None = MAX_LINES
) -> tuple[Change, ...]:
    """Return the file changes in a call's arguments; none for other tools.

    `diff` is against the file that a write replaces.
    """
    path = escaped_line(str(arguments.get("path", "")))
    match tool:
        case "write_file" if diff:
            return (
                _cut(f"write {path}, {diff_counts(diff)}", map(_diff_line, diff_lines(diff)), most),
            )
        case "write_file":
            return (_cut(f"write {path}", _added(arguments.get("content")), most),)
        case "append_to_file":
            return (_cut(f"append to {path}", _added(arguments.get("content")), most),)
        case "replace_in_file":
            lines = _replaced((arguments.get("find"), arguments.get("replace")))
            return (_cut(f"edit {path}", lines, most),)
        case "edit_file":
            return (_cut(f"edit {path}", _edits(arguments), most),)
        case "apply_patch":
            return (_cut("apply a patch", _patched(arguments.get("patch")), most),)
        case protected_paths.GUARDED_TOOL:
            branch = escaped_line(str(arguments.get("branch", "")))
            return (_cut(f"guarded files of {branch}", _patched(arguments.get("diff")), most),)
        case _:
            return ()


def changes_in(order: OrderSummary, *, most: int | None = MAX_LINES) -> tuple[Change, ...]:
    """Return every operation of an order, each with its change."""
    changes = []
    for number, op in enumerate(order.operations, start=1):
        made = changes_of(op.tool, op.arguments, most=most)
        title = f"{number}. {escaped_line(op.line)}"
        changes.append(Change(title, made[0].lines, made[0].left_out) if made else Change(title))
    return tuple(changes)


def _cut(title: str, lines: Iterator[ChangedLine], most: int | None) -> Change:
    every_line = tuple(lines)
    cut = every_line if most is None else every_line[:most]
    return Change(title, cut, len(every_line) - len(cut))


def _added(content: Json) -> Iterator[ChangedLine]:
    yield from (ChangedLine("add", escaped_line(line)) for line in _lines(content))


def _replaced(*edits: tuple[Json, Json]) -> Iterator[ChangedLine]:
    """Yield the diff of edits; of large ones all removed lines, then all added ones."""
    pairs = [(_lines(find), _lines(replace)) for find, replace in edits]
    compared = sum(len(before) * len(after) for before, after in pairs) <= MAX_COMPARED
    for before, after in pairs:
        if compared:
            diff = difflib.unified_diff(before, after, n=2, lineterm="")
            # The heads that stand first, by their place: a changed line may look like one.
            yield from map(_diff_line, islice(diff, 2, None))
        else:
            yield from (ChangedLine("del", escaped_line(line)) for line in before)
            yield from (ChangedLine("add", escaped_line(line)) for line in after)


def _edits(arguments: Mapping[str, Json]) -> Iterator[ChangedLine]:
    edits = arguments.get("edits")
    named = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    yield from _replaced(*((edit.get("find"), edit.get("replace")) for edit in named))
    if isinstance(change := arguments.get("change"), str):
        yield from _patched(change)


def _patched(patch: Json) -> Iterator[ChangedLine]:
    for line in _lines(patch):
        is_head = line.startswith(("+++ ", "--- ", "*** ", "diff "))
        yield ChangedLine("at", escaped_line(line)) if is_head else _diff_line(line)


def _diff_line(line: str) -> ChangedLine:
    kinds: dict[str, LineKind] = {"+": "add", "-": "del", "@": "at"}
    kind = kinds.get(line[:1], "same")
    return ChangedLine(kind, escaped_line(line[1:] if kind in ("add", "del") else line))


def _lines(text: Json) -> list[str]:
    # Only these end a line of a file; what else breaks lines is written out.
    return text.removesuffix("\n").split("\n") if isinstance(text, str) and text else []


HIGHEST_TOGETHER = Tier.T2
"""Highest tier answered together; calls that leave the machine or cannot be undone are answered one by one."""
MAX_EXACT = 80
_TITLES = {
    CardKind.QUESTION: "Question",
    CardKind.CANDIDATE: "Work order",
    CardKind.PLAN: "Plan",
    CardKind.CALL: "Call",
}


@dataclass(frozen=True)
class PlannedCallView:
    """One call of a plan."""

    number: int
    tool: str
    tier: Tier
    lines: tuple[str, ...]
    way_back: str
    is_final: bool
    proofs: tuple[SqlQuery, ...] = ()
    """Read-only statements to verify the call with."""
    ungrounded: tuple[str, ...] = ()
    """Values that were not in the message."""


@dataclass(frozen=True)
class Link:
    """One approval in the chain of required approvals."""

    group: str
    by: str = ""
    how: str = ""
    is_next: bool = False


@dataclass(frozen=True)
class CardView:
    """A card as the template renders it."""

    card: Card
    what: str
    title: str
    exact: tuple[str, ...]
    exact_left_out: int = 0
    question: str = ""
    choices: tuple[str, ...] = ()
    command: str = ""
    beside: tuple[str, ...] = ()
    """Arguments of the call besides the command."""
    changes: tuple[Change, ...] = ()
    calls: tuple[PlannedCallView, ...] = ()
    edits: tuple[str, ...] = ()
    """Differences to the plan that was edited into this one."""
    order: OrderSummary | None = None
    asked_by: str = ""
    forecast: str = ""
    chain: tuple[Link, ...] = ()
    why_not: str = ""
    """Reason this person cannot approve; empty when they can."""
    may_answer: bool = False
    no_edit: str = ""
    together: bool = False
    """True when it may be answered together with others of its tier."""
    whole: bool = False
    next: str = ""
    """Next step for a person so that the run continues; empty when it does by itself."""

    @property
    def version(self) -> str:
        """Changes exactly when the card's content does."""
        return f"{self.card.approval.status}-{len(self.card.approval.grants)}"


@dataclass(frozen=True)
class BlockedView:
    """A blocked run as the template renders it."""

    blocked: Blocked
    calls: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Key, tool and arguments of calls in doubt."""
    may_resolve: bool
    may_resume: bool

    @property
    def version(self) -> str:
        run = self.blocked.run
        return f"{run.status}-{run.fence}-{len(self.calls)}-{int(self.blocked.interrupted)}"


def card_view(
    card: Card, person: Person, groups: Mapping[str, tuple[str, ...]], *, whole: bool = False
) -> CardView:
    """Build the card for this person; `whole` when it is shown alone."""
    approval = card.approval
    exact = tuple(what_lines(approval))
    lines = exact if whole else exact[:MAX_EXACT]
    order = job_approvals(card.run).order(approval) if card.kind is CardKind.CANDIDATE else None
    most = None if whole else MAX_LINES
    may_answer = card.is_open and person.may(ConsoleRole.APPROVER)
    return CardView(
        card=card,
        what=_TITLES[card.kind],
        title=_title(card, order),
        exact=lines,
        exact_left_out=len(exact) - len(lines),
        question=str(approval.arguments.get("question", "")) if _asks(card) else "",
        choices=_choices(approval.arguments) if _asks(card) else (),
        command=_command(approval.arguments) if card.kind is CardKind.CALL else "",
        beside=_beside(approval.arguments),
        changes=changes_in(order, most=most) if order else _changes(card, most),
        calls=_planned(card),
        edits=tuple(change_lines(question)) if (question := question_in(approval)) else (),
        order=order,
        asked_by=asked_by(card.run) if card.run else "",
        forecast=_forecast(card),
        chain=_chain(card),
        why_not=_why_not(card, person, groups),
        may_answer=may_answer,
        no_edit=cannot_be_edited(card) if card.is_open else "already answered",
        together=may_answer and not _asks(card) and approval.tier <= HIGHEST_TOGETHER,
        whole=whole,
    )


def blocked_view(blocked: Blocked, person: Person) -> BlockedView:
    calls = tuple(
        (call.key, call.tool, tuple(exact_lines(call.arguments, indent=0)))
        for call in blocked.in_doubt
    )
    return BlockedView(
        blocked=blocked,
        calls=calls,
        may_resolve=person.may(ConsoleRole.APPROVER),
        may_resume=person.may(ConsoleRole.OPERATOR) and not calls,
    )


def _asks(card: Card) -> bool:
    return card.kind is CardKind.QUESTION


def _title(card: Card, order: OrderSummary | None) -> str:
    if card.kind is CardKind.QUESTION:
        return "An agent has a question"
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
    """Return the call's arguments besides the command: working folder, environment."""
    more = {name: value for name, value in arguments.items() if name != "command"}
    return tuple(
        f"{escaped_line(name)}: {escaped_line(canonical_json(value))}"
        for name, value in more.items()
    )


def _changes(card: Card, most: int | None) -> tuple[Change, ...]:
    if card.kind is not CardKind.CALL:
        return ()
    approval = card.approval
    return changes_of(approval.tool, approval.arguments, diff=approval.diff, most=most)


def _planned(card: Card) -> tuple[PlannedCallView, ...]:
    question = question_in(card.approval)
    if question is None:
        return ()
    verifications = job_approvals(card.run).verifications(card)
    return tuple(
        PlannedCallView(
            number=call.number,
            tool=call.tool,
            tier=call.tier,
            lines=(
                *exact_lines(call.arguments, indent=0),
                *outgoing_lines(call.outgoing, indent=0),
            ),
            way_back=way_back(call.undo, call.undo_until),
            is_final=call.tool in question.irreversible,
            proofs=tuple(verifications.get(call.number, ())),
            ungrounded=tuple(value.line for value in call.ungrounded),
        )
        for call in question.calls
    )


def _forecast(card: Card) -> str:
    spent = f"the run has cost {money(card.spent_usd)} so far" if card.spent_usd else ""
    question = question_in(card.approval)
    if question is None:
        return spent or "no known cost"
    estimate = question.estimate
    usd = money(estimate.usd) if estimate.usd else "no cost"
    forecast = f"{usd}, {span(estimate.seconds)}"
    return f"{forecast}; {spent}" if spent else forecast


def _chain(card: Card) -> tuple[Link, ...]:
    approval = card.approval
    grants = approval.grants
    if not approval.approvers:
        return tuple(Link("anybody", grant.by, grant.how) for grant in grants)
    return tuple(
        Link(group, grants[index].by, grants[index].how)
        if index < len(grants)
        else Link(group, is_next=card.is_open and index == len(grants))
        for index, group in enumerate(approval.approvers)
    )


def _why_not(card: Card, person: Person, groups: Mapping[str, tuple[str, ...]]) -> str:
    approval = card.approval
    if approval.status is not ApprovalStatus.PENDING:
        return "already answered"
    if not person.may(ConsoleRole.APPROVER):
        return (
            "You can view this card. To answer it, sign in with a token that has the approver role."
        )
    if any(grant.by == person.name for grant in approval.grants):
        return "You have already approved this. The next approval must come from someone else."
    group = waits_for(approval) if approval.approvers else ""
    if group and person.name not in groups.get(group, ()):
        return f"The next approval must come from a member of {escaped_line(group)}. You are not a member."
    return ""
