"""Agents of a pair bound to their roles, with the limits and tools that podium.yaml sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.agents.turn_step import RoleAgent
from podium.core.turns import Side, TurnLimits
from podium.jobs.duet.models import PairSide
from podium.ports import Agent

if TYPE_CHECKING:
    from podium.app.app import Podium


def bind_role(podium: Podium, side: Side, slot: PairSide, agent: Agent) -> RoleAgent:
    """Bind an agent to role `planner` or `executer`. One that is not in podium.yaml is limited by the hop's time only."""
    role = side.lower()
    role_settings, settings = (
        podium.settings.roles.get(role),
        podium.settings.agents.get(slot.agent),
    )
    return RoleAgent(
        role=role,
        agent=agent,
        allowed_tools=role_settings.allowed_tools if role_settings else None,
        own_tools=role_settings.own_tools if role_settings else None,
        limits=settings.limits if settings else TurnLimits(seconds=None),
    )
