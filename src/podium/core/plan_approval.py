"""Approval of a whole plan: the question people are asked, and the planned calls that their approval covers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import Field, ValidationError

from podium.core.decisions import Approval
from podium.core.job import job_of_flow, load
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.packs import Estimate, TierName
from podium.core.work import Run


class UngroundedArgument(FrozenModel):
    """A part of a call that neither the message nor its context gives."""

    field: str = ""
    """The argument. Empty: the tool itself."""
    value: Json = None
    reason: NonEmpty

    @property
    def line(self) -> str:
        """`lead_id: not in the message`."""
        return f"{self.field or self.value}: {self.reason}"


class SqlQuery(FrozenModel):
    """A read-only statement with its parameters, to look for oneself."""

    sql: NonEmpty
    parameters: dict[str, Json] = Field(default_factory=dict)
    """`$STEP.FIELD` stands for what a step's result will give."""


class Outgoing(FrozenModel):
    """Content that a call sends out of the machine, as it was when people were asked."""

    to: str = ""
    subject: str = ""
    amount: str = ""
    """Sum that it is about, as it is written to the recipient."""
    text: str = ""
    attachments: tuple[str, ...] = ()
    problem: str = ""
    """Reason why it is not known yet. The others are empty then."""


class PlanChange(FrozenModel):
    """An argument that a person changed when they edited a plan."""

    number: int
    """Number of the call."""
    tool: NonEmpty
    field: NonEmpty
    before: Json = None
    after: Json = None
    """None: it was not given."""


class ApprovedCall(FrozenModel):
    """One call of the plan, with the arguments that a yes is bound to."""

    number: int
    tool: NonEmpty
    tier: TierName
    arguments: dict[str, Json]
    undo: str | None = None
    """The tool that takes it back."""
    undo_until: str = ""
    """How long that is possible, such as `until it is accepted`."""
    outgoing: Outgoing | None = None
    ungrounded: tuple[UngroundedArgument, ...] = ()
    """Arguments that were neither in the message nor in its context."""


class PlanQuestion(FrozenModel):
    """A plan as it was put to people."""

    message: str
    calls: tuple[ApprovedCall, ...]
    irreversible: tuple[str, ...] = ()
    undoes: str = ""
    """The receipt that the plan reverses, as `RUN#NUMBER`."""
    estimate: Estimate = Estimate()
    safer_alternative: str = ""
    changes: tuple[PlanChange, ...] = ()
    """Differences to the plan that was edited into this one."""
    edited_from: str = ""
    """The approval that was edited."""


def marked_names(question: PlanQuestion) -> tuple[str, ...]:
    """Names of tools and arguments that are not from the message."""
    ungrounded = (argument for call in question.calls for argument in call.ungrounded)
    return tuple(dict.fromkeys(str(argument.field or argument.value) for argument in ungrounded))


def question_in(approval: Approval) -> PlanQuestion | None:
    """The plan that an approval asks about; None when it is about a call alone."""
    if not approval.plan_hash:
        return None
    try:
        return PlanQuestion.model_validate(approval.arguments)
    except ValidationError:
        # Not as it was written: then what is there is shown as it is.
        return None


class PlannedCall(FrozenModel):
    """One call of a plan or of a work order."""

    number: int
    tool: str
    arguments: dict[str, Json]
    """May refer to results of earlier calls."""


def planned_call(run: Run, plan_hash: str, number: int) -> PlannedCall | None:
    """Call of this number, if the run's input is the very plan or order of this hash, as its job reads it."""
    job = job_of_flow(run.flow)
    if not plan_hash or job is None or not job.planned_call:
        return None
    read: Callable[[Json, str, int], PlannedCall | None] = load(job.planned_call)
    return read(run.input, plan_hash, number)


def filled_in(value: Json, results: Mapping[int, Json]) -> Json:
    """A step's arguments with every {"$from": …} replaced by what earlier steps gave.

    Raises `KeyError` when a result is not there or lacks the field.
    """
    if isinstance(value, dict):
        if set(value) == {"$from"}:
            return _resolved(value["$from"], results)
        return {name: filled_in(inner, results) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled_in(inner, results) for inner in value]
    return value


def _resolved(source: Json, results: Mapping[int, Json]) -> Json:
    if source and isinstance(source[0], list):
        return [_resolved(item, results) for item in source]
    step, field = source
    result = results[step]
    if not isinstance(result, dict):
        raise KeyError(field)
    return result[field]
