"""Rehearsal: the thinnest story through the whole house.

Scene by scene an agent is asked; what it wants to do passes the gate; what needs a person waits
for one; every scene is a step, so that a run killed in the middle goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.domain.asking import Reply, Turn, TurnLimits
from podium.domain.errors import NeedsHuman
from podium.domain.events import AgentAsked, AgentReplied
from podium.domain.model import Json, NonEmpty, Noun
from podium.ports import Agent, FlowBody, FlowContext, Step


class Scene(Noun):
    """One part of the rehearsal."""

    name: NonEmpty
    role: NonEmpty
    prompt: str


class RehearsalPlan(Noun):
    """What is rehearsed, and where."""

    workspace: NonEmpty
    scenes: tuple[Scene, ...]
    turn_seconds: float = 60.0
    approval_seconds: float = 24 * 3600.0
    most_turns: int = 10
    """How often one scene may be asked again after a person has answered."""


@dataclass(frozen=True)
class RehearsalKit:
    """What the story needs of the house."""

    agent_for: Callable[[str], Agent]
    """The agent that plays a role. Raises `BadInput` when none is configured."""


def rehearsal(kit: RehearsalKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def rehearse(ctx: FlowContext, plan: RehearsalPlan) -> Json:
        said = {}
        for scene in plan.scenes:
            reply = await play(ctx, kit.agent_for(scene.role), scene, plan)
            said[scene.name] = reply.text
        return said

    return rehearse


async def play(ctx: FlowContext, agent: Agent, scene: Scene, plan: RehearsalPlan) -> Reply:
    """Ask until nothing waits for a person any more."""
    session: str | None = None
    for number in range(plan.most_turns):
        reply = await ask(ctx, agent, scene, plan, session, number)
        if not reply.waiting_approvals:
            return reply
        for approval in reply.waiting_approvals:
            await ctx.wait(f"approval:{approval}", seconds=plan.approval_seconds)
        session = reply.session
    raise NeedsHuman(
        f"scene {scene.name!r} asked for approval in {plan.most_turns} turns and is not done; "
        "look at what it asks for, then resume or cancel the run"
    )


async def ask(
    ctx: FlowContext,
    agent: Agent,
    scene: Scene,
    plan: RehearsalPlan,
    session: str | None,
    number: int,
) -> Reply:
    """One turn of a scene, remembered as one step."""

    async def turn(step: Step) -> Reply:
        ctx.note(AgentAsked(role=scene.role, agent=agent.name, prompt=scene.prompt))
        reply = await agent.ask(
            Turn(
                run_id=step.run_id,
                step_key=step.key,
                role=scene.role,
                prompt=scene.prompt,
                workspace=plan.workspace,
                session=session,
                limits=TurnLimits(seconds=plan.turn_seconds),
            )
        )
        ctx.note(
            AgentReplied(
                role=scene.role,
                agent=agent.name,
                text=reply.text,
                usage=reply.usage,
                seconds=reply.seconds,
            )
        )
        return reply

    return await ctx.step(scene.name, turn, index=number, returns=Reply)
