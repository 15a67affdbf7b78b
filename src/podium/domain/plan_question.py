"""What people are asked about when they are asked about a whole plan. It is kept with their approval."""

from __future__ import annotations

from pydantic import ValidationError

from podium.domain.gating import Approval
from podium.domain.model import Json, NonEmpty, Noun
from podium.domain.operating import RunPlan, Ungrounded
from podium.domain.packs import Estimate, TierName


class AskedCall(Noun):
    """One call of the plan, with the arguments that a yes is bound to."""

    number: int
    tool: NonEmpty
    tier: TierName
    arguments: dict[str, Json]
    undo: str | None = None
    """The tool that takes it back."""
    ungrounded: tuple[Ungrounded, ...] = ()
    """What of it was neither in the message nor in its context."""


class PlanQuestion(Noun):
    """A plan as it was put to people."""

    message: str
    calls: tuple[AskedCall, ...]
    irreversible: tuple[str, ...] = ()
    undoes: str = ""
    """The receipt that the plan reverses, as `RUN#NUMBER`."""
    estimate: Estimate = Estimate()
    safer_alternative: str = ""


def question_about(plan: RunPlan) -> PlanQuestion:
    """The question that a plan puts."""
    calls = tuple(
        AskedCall(
            number=step.number,
            tool=step.tool,
            tier=step.tier,
            arguments=step.arguments,
            undo=step.undo,
            ungrounded=step.ungrounded,
        )
        for step in plan.steps
    )
    return PlanQuestion(
        message=plan.message,
        calls=calls,
        irreversible=plan.irreversible,
        undoes=plan.undoes,
        estimate=plan.estimate,
        safer_alternative=plan.safer_alternative,
    )


def why_asked(plan: RunPlan) -> str:
    """Why a person is asked about a plan."""
    if not plan.ungrounded:
        return f"{plan.estimated_risk} needs a person"
    marks = [mark.line for step in plan.steps for mark in step.ungrounded]
    return "; ".join(dict.fromkeys(marks))


def marked_names(question: PlanQuestion) -> tuple[str, ...]:
    """What is not from the message: tools, and arguments by their names."""
    marks = (mark for call in question.calls for mark in call.ungrounded)
    return tuple(dict.fromkeys(str(mark.field or mark.value) for mark in marks))


def question_in(approval: Approval) -> PlanQuestion | None:
    """The plan that an approval asks about; None when it is about a call alone."""
    if not approval.plan_hash:
        return None
    try:
        return PlanQuestion.model_validate(approval.arguments)
    except ValidationError:
        # Not as it was written: then what is there is shown as it is.
        return None
