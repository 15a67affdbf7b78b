"""An approval on a terminal, as a person must see it: whole, with nothing hidden in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cli.screen import Screen
from podium.domain.gating import Approval, Grant
from podium.telling.approval_words import plan_question_in, waits_for, what_lines
from podium.telling.untrusted import shown_line
from podium.telling.wording import moment

if TYPE_CHECKING:
    from podium.domain.plan_question import PlanQuestion

LONGEST_MESSAGE = 300


def show_approval(screen: Screen, approval: Approval) -> None:
    """Everything a yes would be bound to, and who may say it until when."""
    question = plan_question_in(approval)
    asked = shown_line(question.message, LONGEST_MESSAGE) if question else ""
    screen.facts(
        [
            ("approval", approval.id),
            ("status", approval.status.value),
            ("run", approval.run_id),
            ("tool", "" if question else shown_line(approval.tool)),
            ("plan for", asked),
            ("tier", str(approval.tier)),
            ("why asked", shown_line(approval.reason)),
            ("approvers", ", then ".join(approval.approvers) or "anybody"),
            ("approved by", ", ".join(map(_grant_words, approval.grants))),
            ("said", shown_line(approval.said)),
            ("waits for", waits_for(approval) if approval.approvers else ""),
            ("rejected by", _rejected_words(approval)),
            ("because", shown_line(approval.why)),
            ("deadline", moment(approval.deadline)),
        ]
    )
    if approval.arithmetic:
        screen.line("\nhow the tier adds up")
        for term in approval.arithmetic:
            screen.line(f"  {term.tier}: {shown_line(term.because)}")
    screen.line(f"\nwhat will happen{_how_many(question)}")
    for line in what_lines(approval):
        # What is hidden is written out in it already, and joined emoji are to stay joined.
        screen.pass_on(f"  {line}\n".encode(errors="replace"))


def _how_many(question: PlanQuestion | None) -> str:
    many = question is not None and len(question.calls) > 1
    return f": {len(question.calls)} calls, in this order" if question and many else ""


def _grant_words(grant: Grant) -> str:
    group = f" for {grant.group}" if grant.group else ""
    how = f" ({shown_line(grant.how)})" if grant.how else ""
    return f"{shown_line(grant.by)}{group}{how}"


def _rejected_words(approval: Approval) -> str:
    how = f" ({approval.rejected_how.replace('_', ' ')})" if approval.rejected_how else ""
    return f"{shown_line(approval.rejected_by)}{how}"
