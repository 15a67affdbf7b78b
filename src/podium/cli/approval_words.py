"""An approval as a person must see it: whole, with nothing hidden in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.cli.screen import Screen, moment
from podium.cli.untrusted import shown_line, shown_text
from podium.domain.gating import Approval, ApprovalStatus, canonical_json
from podium.domain.model import Json

_TOUCHES = ("  reads /", "  writes /", "  deletes /", "  led to by: ")
"""Lines of a summary that say more than the arguments do."""


def show_approval(screen: Screen, approval: Approval) -> None:
    """Everything a yes would be bound to, and who may say it until when."""
    screen.facts(
        [
            ("approval", approval.id),
            ("status", approval.status.value),
            ("run", approval.run_id),
            ("tool", shown_line(approval.tool)),
            ("tier", str(approval.tier)),
            ("why asked", shown_line(approval.reason)),
            ("approvers", ", then ".join(approval.approvers) or "anybody"),
            ("approved by", ", ".join(grant.by for grant in approval.grants)),
            ("rejected by", shown_line(approval.rejected_by)),
            ("because", shown_line(approval.why)),
            ("deadline", moment(approval.deadline)),
        ]
    )
    if approval.arithmetic:
        screen.line("\nhow the tier adds up")
        for term in approval.arithmetic:
            screen.line(f"  {term.tier}: {shown_line(term.because)}")
    screen.line("\nwhat will happen")
    for line in what_lines(approval):
        screen.line(f"  {line}")


def what_lines(approval: Approval) -> Iterator[str]:
    """What a yes is for, line by line: the arguments as they are, long ones too."""
    if not approval.arguments:
        yield from shown_text(approval.summary).split("\n")
        return
    yield shown_line(approval.tool)
    for name, value in approval.arguments.items():
        first, *more = _argument(value)
        yield f"  {shown_line(name)}: {first}"
        yield from (f"    {line}" for line in more)
    for line in approval.summary.split("\n"):
        if line.startswith(_TOUCHES):
            yield shown_line(line)


def what_line(approval: Approval) -> str:
    """The same on one line, for lists."""
    if not approval.arguments:
        return shown_line(approval.summary)
    return f"{shown_line(approval.tool)} {arguments_line(approval.arguments)}"


def arguments_line(arguments: Mapping[str, Json], longest: int = 0) -> str:
    """A call's arguments on one line, with what cannot be seen written out."""
    return shown_line(canonical_json(dict(arguments)), longest)


def waits_for(approval: Approval) -> str:
    """Whose answer comes next; empty when none is awaited."""
    if approval.status is not ApprovalStatus.PENDING:
        return ""
    answered = len(approval.grants)
    return approval.approvers[answered] if answered < len(approval.approvers) else "anybody"


def _argument(value: Json) -> list[str]:
    if isinstance(value, str):
        lines = shown_text(value).split("\n")
        return lines if len(lines) == 1 else ["", *lines]
    return [shown_line(canonical_json(value))]
