"""Brains of every medium behind one port. For now: the one that plays a script."""

from podium.agents.scripted import AgentScript, ScriptedAgent

__all__ = ["AgentScript", "ScriptedAgent"]
