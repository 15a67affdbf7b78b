"""The rehearsal's kit, and its plan as podium.yaml has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from podium.domain.errors import BadInput
from podium.flows import RehearsalKit, RehearsalPlan, Scene, rehearsal
from podium.ports import Flow
from podium.wiring.agents import agents_by_role
from podium.wiring.configuration import Configuration

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

FLOW = "rehearsal"


async def build_rehearsal(podium: Podium) -> Flow:
    """The flow with the agents of this project."""
    from podium.engine import FlowDefinition

    kit = RehearsalKit(agent_for=await agents_by_role(podium, podium.folders.project))
    return FlowDefinition(FLOW, rehearsal(kit), input_type=RehearsalPlan)


def rehearsal_plan(configuration: Configuration) -> RehearsalPlan:
    """What podium.yaml says under `flows: rehearsal:`. Raises `BadInput` when there is nothing to play."""
    options = configuration.settings.flows.get(FLOW, {})
    try:
        scenes = TypeAdapter(tuple[Scene, ...]).validate_python(options.get("scenes", ()))
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in ("flows", FLOW, "scenes", *fault["loc"]))
        raise BadInput(f"podium.yaml: {where}: {fault['msg']}") from error
    if not scenes:
        raise BadInput(
            "podium.yaml has no scenes to rehearse; list them under `flows: rehearsal: scenes:`"
        )
    return RehearsalPlan(workspace=str(configuration.folders.project), scenes=scenes)
