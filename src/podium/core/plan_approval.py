"""Approval of a whole plan: the question people are asked, and the planned calls that their approval covers."""

from __future__ import annotations

from pydantic import ValidationError

from podium.core.decisions import Approval
from podium.core.model import Json, NonEmpty, Noun
from podium.core.packs import Estimate, TierName
from podium.core.work import Run
from podium.jobs.operator.models import OperatorJob, RunPlan, Ungrounded
from podium.jobs.sense.orders.work_order import OrderJob


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


class PlannedCall(Noun):
    """One of them."""

    number: int
    tool: str
    arguments: dict[str, Json]
    """May refer to results of earlier calls."""


def planned_call(run: Run, plan_hash: str, number: int) -> PlannedCall | None:
    """The call of this number, if the run's input is the very plan or order of this hash."""
    if not plan_hash:
        return None
    return _of_plan(run.input, plan_hash, number) or _of_order(run.input, plan_hash, number)


def _of_plan(given: Json, plan_hash: str, number: int) -> PlannedCall | None:
    try:
        plan = OperatorJob.model_validate(given).plan
    except ValidationError:
        return None
    if plan.plan_hash != plan_hash:
        return None
    found = next((step for step in plan.steps if step.number == number), None)
    if found is None:
        return None
    return PlannedCall(number=number, tool=found.tool, arguments=found.arguments)


def _of_order(given: Json, plan_hash: str, number: int) -> PlannedCall | None:
    try:
        order = OrderJob.model_validate(given).order
    except ValidationError:
        return None
    if order is None or order.content_hash != plan_hash or not 0 < number <= len(order.ops):
        return None
    tool, arguments = order.ops[number - 1].call
    return PlannedCall(number=number, tool=tool, arguments=arguments)
