"""Brains of every medium behind one port."""

from podium.agents.contract import ContractedAgent
from podium.agents.failover import FailoverAgent
from podium.agents.kit import AgentKit, AgentOptions
from podium.agents.scripted import AgentScript, ScriptedAgent

__all__ = [
    "AgentKit",
    "AgentOptions",
    "AgentScript",
    "ContractedAgent",
    "FailoverAgent",
    "ScriptedAgent",
]
