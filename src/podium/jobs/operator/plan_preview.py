"""Preview of a plan: what its calls send out of the machine, as far as that is known before any of them is performed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from podium.core.model import Json
from podium.core.packs import Pack, PackTool
from podium.core.plan_approval import Outgoing, PlanChange
from podium.jobs.operator.models import PlanStep, RunPlan

PreviewCall = Callable[[PackTool, Mapping[str, Json]], Awaitable[Outgoing | None]]


async def previewed(plan: RunPlan, pack: Pack, preview: PreviewCall, now: datetime) -> RunPlan:
    """The plan with what its calls send. `now` is a time before anything of that is read."""
    tools = {step.number: pack.tool(step.tool) for step in plan.steps}
    if not any(tool and tool.preview for tool in tools.values()):
        return plan
    given = {step.number: step.arguments for step in plan.steps}
    steps = tuple([await _step(step, tools[step.number], given, preview) for step in plan.steps])
    return plan.model_copy(update={"steps": steps, "previewed_at": now})


async def _step(
    step: PlanStep,
    tool: PackTool | None,
    given: Mapping[int, Mapping[str, Json]],
    preview: PreviewCall,
) -> PlanStep:
    if tool is None or not tool.preview:
        return step
    arguments = {name: _foreseen(value, given) for name, value in step.arguments.items()}
    late = [name for name, value in arguments.items() if value is None]
    if late:
        outgoing: Outgoing | None = Outgoing(problem=f"{late[0]} is a result of an earlier call")
    else:
        outgoing = await preview(tool, arguments)
    return step.model_copy(update={"outgoing": outgoing})


def _foreseen(value: Json, given: Mapping[int, Mapping[str, Json]]) -> Json:
    """The value; for the result of an earlier call the argument of that name, which it gives back. None: not known."""
    if not isinstance(value, dict) or set(value) != {"$from"}:
        return value
    match value["$from"]:
        case [int(number), str(field)]:
            argument = given.get(number, {}).get(field)
            return None if argument is None else _foreseen(argument, given)
        case _:
            return None


def changes_between(before: RunPlan, after: RunPlan) -> tuple[PlanChange, ...]:
    """The arguments that differ, call by call."""
    earlier = {step.number: step.arguments for step in before.steps}
    return tuple(
        PlanChange(
            number=step.number,
            tool=step.tool,
            field=name,
            before=earlier.get(step.number, {}).get(name),
            after=step.arguments.get(name),
        )
        for step in after.steps
        for name in dict.fromkeys((*earlier.get(step.number, {}), *step.arguments))
        if earlier.get(step.number, {}).get(name) != step.arguments.get(name)
    )
