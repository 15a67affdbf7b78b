"""The calls that a run was started for, as they stand in its input: what a yes to the whole of it covers."""

from __future__ import annotations

from pydantic import ValidationError

from podium.domain.model import Json, Noun
from podium.domain.operating import OperatorJob
from podium.domain.orders import OrderJob
from podium.domain.work import Run


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
