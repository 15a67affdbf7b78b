"""Sides of a duet as players: an agent in its part, with what podium.yaml says of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.domain.asking import TurnLimits
from podium.domain.duets import Seat
from podium.domain.messages import Side
from podium.flows import Player
from podium.ports import Agent

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


def player_of(podium: Podium, side: Side, seat: Seat, agent: Agent) -> Player:
    """Its role is `planner` or `executer`; an agent that podium.yaml does not have is held to the legs' time alone."""
    role = side.lower()
    known, settings = podium.settings.roles.get(role), podium.settings.agents.get(seat.agent)
    return Player(
        role=role,
        agent=agent,
        allowed_tools=known.allowed_tools if known else None,
        own_tools=known.own_tools if known else None,
        limits=settings.limits if settings else TurnLimits(seconds=None),
    )
