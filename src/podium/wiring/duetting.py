"""A duet put together: its pair on terminals or as agents that are asked turn by turn, and what its story needs."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from podium.domain.duets import DUET, DuetJob, Pair, Seat
from podium.domain.messages import Side
from podium.flows.duet import Chair, DuetKit, Stage, play_duet
from podium.ports import Flow, FlowBody
from podium.wiring.agents import build_agent
from podium.wiring.duet_grants import refuse_ungranted
from podium.wiring.late_flow import when_needed
from podium.wiring.players import player_of
from podium.wiring.settings import AgentSettings

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


async def build_duet(podium: Podium) -> Flow:
    """The flow with the agents of this project."""
    from podium.engine import FlowDefinition

    return FlowDefinition(DUET, when_needed(lambda: _duet(podium)), input_type=DuetJob)


async def _duet(podium: Podium) -> FlowBody:
    from podium.agents.contract.messages import read_messages

    kit = DuetKit(
        store=await podium.store(),
        clock=podium.clock,
        purse=await podium.purse(),
        stage=lambda pair: stage_of(podium, pair),
        read=read_messages,
        new_nonce=lambda: secrets.token_hex(4),
    )
    return play_duet(kit)


async def stage_of(podium: Podium, pair: Pair) -> Stage:
    """Both sides, ready to be asked. Raises what keeps them from that."""
    refuse_ungranted(podium, pair)
    if pair.transport == "headless":
        return Stage(
            planner=await _headless(podium, "PLANNER", pair.planner),
            executer=await _headless(podium, "EXECUTER", pair.executer),
        )
    from podium.wiring.duet_terminals import terminals_of

    return await terminals_of(podium, pair)


async def _headless(podium: Podium, side: Side, seat: Seat) -> Chair:
    from podium.wiring.duet_fence import duet_fence

    known = seat.agent in (*podium.settings.agents, *podium.made_agents)
    fence = duet_fence(podium)
    agent = build_agent(
        podium,
        seat.agent,
        await podium.hook_doors(enclosures=fence),
        fence=fence,
        unlisted=None if known else AgentSettings(kind=seat.agent),
        command=seat.command,
    )
    return Chair(player_of(podium, side, seat, agent), seat.cwd)
