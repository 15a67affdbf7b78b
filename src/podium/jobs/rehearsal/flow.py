"""Flow of the rehearsal: scenes of podium.yaml are played to try out a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import PositiveInt, Strict

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_step import MAX_TURNS, RoleAgent, ask_until_answered
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.ports import FlowBody, FlowContext


class Scene(FrozenModel):
    """One part of the rehearsal."""

    name: NonEmpty
    """Name of the scene."""
    role: NonEmpty
    """Role that plays it."""
    prompt: str
    """What the role is asked."""


class RehearsalOptions(FrozenModel):
    """Options of `podium rehearse`."""

    scenes: tuple[Scene, ...] = ()
    """Scenes to play, in this order."""
    most_turns: Annotated[PositiveInt, Strict()] = MAX_TURNS
    """Turns of one scene that may end with a question before a person is asked."""


class RehearsalPlan(RehearsalOptions):
    """What is rehearsed, and where."""

    workspace: NonEmpty


@dataclass(frozen=True)
class RehearsalDeps:
    """What the story needs of the house."""

    player_for: Callable[[str], RoleAgent]
    """Who plays a role. Raises `BadInput` when nobody is configured."""
    purse: BudgetTracker


def rehearsal(kit: RehearsalDeps) -> FlowBody:
    """The flow, with its kit in hand."""

    async def rehearse(ctx: FlowContext, plan: RehearsalPlan) -> Json:
        said = {}
        for scene in plan.scenes:
            reply = await ask_until_answered(
                ctx,
                kit.player_for(scene.role),
                scene.prompt,
                budget=kit.purse,
                name=scene.name,
                workspace=plan.workspace,
                most_turns=plan.most_turns,
            )
            said[scene.name] = reply.text
        return said

    return rehearse
