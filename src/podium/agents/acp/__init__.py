"""Agents that speak the Agent Client Protocol: any of them, by its command line."""

from podium.agents.acp.agent import AcpAgent

__all__ = ["AcpAgent"]
