"""Agents that are programs of somebody else's: they join through a local socket, are asked, and answer.

Needs the extra `duet`.
"""

from podium.agents.bus.bus import Bus, BusAgent, BusSettings
from podium.agents.bus.peer import Asked, BusPeer, endpoint_of, socket_of

__all__ = ["Asked", "Bus", "BusAgent", "BusPeer", "BusSettings", "endpoint_of", "socket_of"]
