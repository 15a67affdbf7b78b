"""Agents of a pair bound to their roles, with the limits and tools that podium.yaml sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.agents.turn_step import RoleAgent
from podium.core.turns import Side, TurnLimits
from podium.jobs.duet.models import PairSide
from podium.ports import Agent

if TYPE_CHECKING:
    from podium.app.app import Podium


def player_of(podium: Podium, side: Side, seat: PairSide, agent: Agent) -> RoleAgent:
    """Its role is `planner` or `executer`; an agent that podium.yaml does not have is held to the legs' time alone."""
    role = side.lower()
    known, settings = podium.settings.roles.get(role), podium.settings.agents.get(seat.agent)
    return RoleAgent(
        role=role,
        agent=agent,
        allowed_tools=known.allowed_tools if known else None,
        own_tools=known.own_tools if known else None,
        limits=settings.limits if settings else TurnLimits(seconds=None),
    )
