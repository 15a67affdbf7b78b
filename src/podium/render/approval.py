"""Text of an approval, complete, with nothing hidden in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import TYPE_CHECKING

from podium.core.decisions import Approval, ApprovalStatus, canonical_json
from podium.core.model import Json
from podium.core.protected_paths import GUARDED_TOOL
from podium.render.text import counted, escaped_line, escaped_text

if TYPE_CHECKING:
    from podium.core.plan_approval import ApprovedCall, Outgoing, PlanQuestion


MAX_VALUE = 60
MAX_CALLS = 3
"""In a list; one approval is shown whole."""

DELIVERY = "deliver_order"
"""The tool whose call hands over a whole work order."""

_TOUCHES = ("  reads /", "  writes /", "  deletes /", "  led to by: ", "  replaces ")
"""Lines of a summary that say more than the arguments do."""
_CUT = re.compile(r"\[cut: (-\d+ \+\d+) lines in all\]$")


def plan_question_in(approval: Approval) -> PlanQuestion | None:
    """The plan that an approval asks about; None when it is about a call alone."""
    if not approval.plan_hash:
        return None
    # Late: plans come with the operator and its packs, which an approval of a call does without.
    from podium.core.plan_approval import question_in

    return question_in(approval)


def what_lines(approval: Approval) -> Iterator[str]:
    """Describe line by line what an approval is for: the arguments as they are, long ones too."""
    if (question := plan_question_in(approval)) is not None:
        yield from _plan_lines(question)
        return
    if not approval.arguments:
        yield from escaped_text(approval.summary).split("\n")
        return
    yield escaped_line(approval.tool)
    for name, value in approval.arguments.items():
        first, *more = _argument(value)
        yield f"  {escaped_line(name)}: {first}"
        yield from (f"    {line}" for line in more)
    for line in approval.summary.split("\n"):
        if line.startswith(_TOUCHES):
            yield escaped_line(line)
    if approval.diff:
        yield f"  {diff_counts(approval.diff)}:"
        yield from (f"    {escaped_line(line)}" for line in diff_lines(approval.diff))


def diff_lines(diff: str) -> list[str]:
    """Lines of a unified diff without its two heads."""
    lines = diff.removesuffix("\n").split("\n")
    return lines[2:] if lines[0].startswith("--- ") else lines


def diff_counts(diff: str) -> str:
    """Count a file's removed and added lines, as `replaces the file: -12 +3 lines`."""
    if (cut := _CUT.search(diff)) is not None:
        return f"replaces the file: {cut[1]} lines, not all shown"
    if diff.startswith("["):
        return "replaces the file"
    lines = diff_lines(diff)
    removed, added = (sum(line.startswith(sign) for line in lines) for sign in "-+")
    return f"replaces the file: -{removed} +{added} lines"


def what_line(approval: Approval) -> str:
    """The same on one line, for lists. Of a plan it says what is left out."""
    if (question := plan_question_in(approval)) is not None:
        return _plan_line(question)
    if not approval.arguments:
        return summary_line(approval.summary)
    if approval.tool == DELIVERY:
        return _order_line(approval.arguments)
    if approval.tool == GUARDED_TOOL:
        files = ", ".join(map(str, approval.arguments.get("files") or ()))
        return escaped_line(f"guarded files of {approval.arguments.get('branch')}: {files}")
    return f"{escaped_line(approval.tool)} {arguments_line(approval.arguments)}"


def summary_line(summary: str) -> str:
    """A summary on one line: `; ` before each fact, ` ⏎ ` where a value has lines of its own. Empty ones are left out."""
    first, *lines = [line for line in summary.split("\n") if line.strip()] or [""]
    # What belongs to the fact above stands further in than a fact does.
    more = (
        f"{' ⏎' if line.startswith('   ') else ';'} {escaped_line(line.strip())}" for line in lines
    )
    return escaped_line(first) + "".join(more)


def arguments_line(arguments: Mapping[str, Json], longest: int = 0) -> str:
    """A call's arguments on one line, with what cannot be seen written out."""
    return escaped_line(canonical_json(dict(arguments)), longest)


def _order_line(arguments: Mapping[str, Json]) -> str:
    """A work order to be delivered; one approval shows it whole."""
    zones = ", ".join(map(str, arguments.get("zones") or ()))
    where = f" in {zones}" if zones else ""
    return escaped_line(
        f"work order {arguments.get('wo_id')} for {arguments.get('target') or 'nobody'}{where}"
    )


def waits_for(approval: Approval) -> str:
    """The people whose answer comes next; empty when none is awaited."""
    if approval.status is not ApprovalStatus.PENDING:
        return ""
    answered = len(approval.grants)
    return approval.approvers[answered] if answered < len(approval.approvers) else "anybody"


def outgoing_lines(outgoing: Outgoing | None, indent: int) -> Iterator[str]:
    """Show what a call sends out of the machine: recipient, sum, subject, attachments and the whole text."""
    from podium.render.argument_text import exact_lines

    if outgoing is None:
        return
    start = " " * indent
    if outgoing.problem:
        yield f"{start}sends: not known yet: {escaped_line(outgoing.problem)}"
        return
    parts: dict[str, Json] = {
        "to": outgoing.to,
        "sum": outgoing.amount,
        "subject": outgoing.subject,
        "attachments": ", ".join(outgoing.attachments),
        "text": outgoing.text.rstrip("\n"),
    }
    yield f"{start}sends"
    yield from exact_lines({name: value for name, value in parts.items() if value}, indent + 2)


def way_back(undo: str | None, until: str = "") -> str:
    """`can be undone by quote.reopen until it is accepted`; empty without an inverse."""
    if not undo:
        return ""
    return f"can be undone by {undo}{f' {escaped_line(until)}' if until else ''}"


def change_lines(question: PlanQuestion) -> Iterator[str]:
    """Show what a person changed when they edited a plan into this one."""
    if not question.changes:
        return
    yield f"edited from {question.edited_from}:"
    for change in question.changes:
        start = f"  {change.number}. {change.tool} {escaped_line(change.field)}:"
        before, after = _changed_text(change.before), _changed_text(change.after)
        if "\n" not in before + after:
            yield f"{start} {before} → {after}"
            continue
        yield start
        diff = unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1)
        yield from (f"    {line}" for line in [*diff][2:])


def _changed_text(value: Json) -> str:
    if value is None:
        return "not given"
    return escaped_text(value) if isinstance(value, str) else escaped_line(canonical_json(value))


def _plan_lines(question: PlanQuestion) -> Iterator[str]:
    """Call by call, each with its tier, every argument whole, and whether there is a way back."""
    # Late: loading the operator takes longer than to show anything else.
    from podium.render.argument_text import exact_lines

    yield from change_lines(question)
    for call in question.calls:
        yield f"{call.number}. {call.tool} ({call.tier})"
        yield from exact_lines(call.arguments, indent=5)
        yield from outgoing_lines(call.outgoing, indent=5)
        yield from (f"   ! {escaped_line(argument.line)}" for argument in call.ungrounded)
        if call.tool in question.irreversible:
            yield "   cannot be undone"
        elif call.undo:
            yield f"   {way_back(call.undo)}"
            if call.undo_until:
                yield f"     {escaped_line(call.undo_until)}"
    if question.undoes:
        run, _, number = question.undoes.rpartition("#")
        yield f"reverses receipt {number} of run {run}"
    if question.safer_alternative:
        yield f"safer: {escaped_line(question.safer_alternative)}"
    cost = f"{question.estimate.usd:.4f} USD" if question.estimate.usd else "no cost"
    yield f"estimate: {cost}, {question.estimate.seconds:g} s"


def _plan_line(question: PlanQuestion) -> str:
    from podium.core.plan_approval import marked_names
    from podium.render.argument_text import value_text

    def call_text(call: ApprovedCall) -> str:
        arguments = (
            f"{name}={value_text(call.arguments[name], MAX_VALUE)}" for name in call.arguments
        )
        text = f"{call.tool} ({call.tier}) {', '.join(arguments)}".rstrip()
        if (sent := call.outgoing) is None or sent.problem:
            return text
        about = (sent.to, sent.amount, sent.subject, *sent.attachments)
        return f"{text} → {', '.join(value_text(part, MAX_VALUE) for part in about if part)}"

    first = "; ".join(map(call_text, question.calls[:MAX_CALLS]))
    left = len(question.calls) - MAX_CALLS
    all_of_it = f"{first}; and {counted(left, 'more call')}" if left > 0 else first
    # First, because lists, notices and chats cut what comes behind.
    names = ", ".join(marked_names(question))
    return escaped_line(f"! not in the message: {names}! {all_of_it}" if names else all_of_it)


def _argument(value: Json) -> list[str]:
    if isinstance(value, str):
        lines = escaped_text(value).split("\n")
        return lines if len(lines) == 1 else ["", *lines]
    return [escaped_line(canonical_json(value))]
