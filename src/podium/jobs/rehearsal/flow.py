"""Flow of the rehearsal: scenes of podium.yaml are played to try out a policy; its composition and its plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import PositiveInt, Strict

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.conversation import MAX_TURNS, ask_until_answered
from podium.agents.turn_step import RoleAgent
from podium.app.agent_builder import agents_by_role
from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.ports import FlowBody, FlowContext

if TYPE_CHECKING:
    from podium.app.app import Podium


class Scene(FrozenModel):
    """One part of the rehearsal."""

    name: NonEmpty
    """Name of the scene."""
    role: NonEmpty
    """Role that plays it."""
    prompt: str
    """Prompt for the role."""


class RehearsalOptions(FrozenModel):
    """Options of `podium rehearse`."""

    scenes: tuple[Scene, ...] = ()
    """Scenes to play, in this order."""
    most_turns: Annotated[PositiveInt, Strict()] = MAX_TURNS
    """Turns of one scene that may end with a question before a person is asked."""


class RehearsalPlan(RehearsalOptions):
    """Scenes to play, and their workspace."""

    workspace: NonEmpty


@dataclass(frozen=True)
class RehearsalDeps:
    """Dependencies of the flow."""

    agent_for_role: Callable[[str], RoleAgent]
    """Returns the agent of a role. Raises `BadInput` when none is configured."""
    budget_tracker: BudgetTracker


def rehearsal(deps: RehearsalDeps) -> FlowBody:
    """Build the flow."""

    async def rehearse(ctx: FlowContext, plan: RehearsalPlan) -> Json:
        replies = {}
        for scene in plan.scenes:
            reply = await ask_until_answered(
                ctx,
                deps.agent_for_role(scene.role),
                scene.prompt,
                budget=deps.budget_tracker,
                name=scene.name,
                workspace=plan.workspace,
                most_turns=plan.most_turns,
            )
            replies[scene.name] = reply.text
        return replies

    return rehearse


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
