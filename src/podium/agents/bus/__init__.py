"""Agents that are programs of somebody else's: they join through a local socket, are asked, and answer.

Needs the extra `duet`.
"""

from podium.agents.bus.agent import BusAgent
from podium.agents.bus.bus import Bus, BusSettings
from podium.agents.bus.peer import BusPeer
from podium.agents.bus.wire import Asked, endpoint_of, socket_of

__all__ = ["Asked", "Bus", "BusAgent", "BusPeer", "BusSettings", "endpoint_of", "socket_of"]
