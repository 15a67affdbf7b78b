"""Composition of the rehearsal, and its plan from podium.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.app.agent_builder import agents_by_role
from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options
from podium.core.errors import BadInput
from podium.jobs.rehearsal.flow import RehearsalDeps, RehearsalPlan, rehearsal
from podium.ports import FlowBody

if TYPE_CHECKING:
    from podium.app.app import Podium


FLOW = "rehearsal"


async def build_rehearsal(podium: Podium) -> FlowBody:
    """Build the flow with the agents of this project."""
    deps = RehearsalDeps(
        agent_for_role=await agents_by_role(podium), budget_tracker=await podium.budget_tracker()
    )
    return rehearsal(deps)


def rehearsal_plan(configuration: Configuration) -> RehearsalPlan:
    """Read the plan under `flows: rehearsal:` in podium.yaml. Raises `BadInput` when it has no scenes."""
    workspace = str(configuration.folders.project)
    plan = RehearsalPlan.model_validate(
        {**flow_options(configuration, FLOW), "workspace": workspace}
    )
    if not plan.scenes:
        raise BadInput(
            "podium.yaml has no scenes to rehearse; list them under `flows: rehearsal: scenes:`"
        )
    return plan
