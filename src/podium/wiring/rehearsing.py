"""The rehearsal's kit, and its plan as podium.yaml has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.domain.errors import BadInput
from podium.flows import RehearsalKit, RehearsalPlan, rehearsal
from podium.ports import Flow
from podium.wiring.agents import players_by_role
from podium.wiring.configuration import Configuration
from podium.wiring.flow_options import flow_options

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

FLOW = "rehearsal"


async def build_rehearsal(podium: Podium) -> Flow:
    """The flow with the agents of this project."""
    from podium.engine import FlowDefinition

    kit = RehearsalKit(player_for=await players_by_role(podium), purse=await podium.purse())
    return FlowDefinition(FLOW, rehearsal(kit), input_type=RehearsalPlan)


def rehearsal_plan(configuration: Configuration) -> RehearsalPlan:
    """What podium.yaml says under `flows: rehearsal:`. Raises `BadInput` when there is nothing to play."""
    place = str(configuration.folders.project)
    plan = RehearsalPlan.model_validate({**flow_options(configuration, FLOW), "workspace": place})
    if not plan.scenes:
        raise BadInput(
            "podium.yaml has no scenes to rehearse; list them under `flows: rehearsal: scenes:`"
        )
    return plan
