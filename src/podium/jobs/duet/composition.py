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
from podium.jobs.duet.role_agents import player_of
from podium.ports import FlowBody

if TYPE_CHECKING:
    from podium.app.app import Podium


async def build_duet(podium: Podium) -> FlowBody:
    """Build the flow with the agents of this project."""
    from podium.agents.contract.messages import read_messages

    kit = DuetDeps(
        store=await podium.store(),
        clock=podium.clock,
        purse=await podium.budget_tracker(),
        stage=lambda pair: stage_of(podium, pair),
        read=read_messages,
        new_nonce=lambda: secrets.token_hex(4),
    )
    return play_duet(kit)


async def stage_of(podium: Podium, pair: Pair) -> DuetSides:
    """Both sides, ready to be asked. Raises what keeps them from that."""
    refuse_ungranted(podium, pair)
    if pair.transport == "headless":
        return DuetSides(
            planner=await _headless(podium, "PLANNER", pair.planner),
            executer=await _headless(podium, "EXECUTER", pair.executer),
        )
    from podium.jobs.duet.terminals import terminals_of

    return await terminals_of(podium, pair)


async def _headless(podium: Podium, side: Side, seat: PairSide) -> DuetSide:
    from podium.jobs.duet.confinement import duet_fence

    known = seat.agent in (*podium.settings.agents, *podium.made_agents)
    fence = duet_fence(podium)
    agent = build_agent(
        podium,
        seat.agent,
        await podium.hook_doors(confinement_provider=fence),
        confinement=fence,
        unlisted=None if known else AgentSettings(kind=seat.agent),
        command=seat.command,
    )
    return DuetSide(player_of(podium, side, seat, agent), seat.cwd)
