"""Composition of the flow: its dependencies, and the pair as terminals or as headless agents."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from podium.app.agent_builder import build_agent
from podium.config.settings import AgentSettings
from podium.core.turns import Side
from podium.jobs.duet import DuetDeps, DuetSide, DuetSides, play_duet
from podium.jobs.duet.claims import refuse_ungranted
from podium.jobs.duet.models import Pair, PairSide
from podium.jobs.duet.pairs import bind_role
from podium.ports import FlowBody

if TYPE_CHECKING:
    from podium.app.app import Podium


async def build_duet(podium: Podium) -> FlowBody:
    """Build the flow with the agents of this project."""
    from podium.agents.contract.messages import read_messages

    deps = DuetDeps(
        store=await podium.store(),
        clock=podium.clock,
        budget_tracker=await podium.budget_tracker(),
        prepare_sides=lambda pair: prepare_sides(podium, pair),
        read=read_messages,
        new_nonce=lambda: secrets.token_hex(4),
    )
    return play_duet(deps)


async def prepare_sides(podium: Podium, pair: Pair) -> DuetSides:
    """Prepare both sides to be asked. Raises the reason when one cannot be."""
    refuse_ungranted(podium, pair)
    if pair.transport == "headless":
        return DuetSides(
            planner=await _headless(podium, "PLANNER", pair.planner),
            executer=await _headless(podium, "EXECUTER", pair.executer),
        )
    from podium.jobs.duet.terminals import terminals_of

    return await terminals_of(podium, pair)


async def _headless(podium: Podium, side: Side, slot: PairSide) -> DuetSide:
    from podium.jobs.duet.confinement import duet_confinement

    configured = slot.agent in (*podium.settings.agents, *podium.made_agents)
    confinement = duet_confinement(podium)
    agent = build_agent(
        podium,
        slot.agent,
        await podium.hook_doors(confinement_provider=confinement),
        confinement=confinement,
        unlisted=None if configured else AgentSettings(kind=slot.agent),
        command=slot.command,
    )
    return DuetSide(bind_role(podium, side, slot, agent), slot.cwd)
