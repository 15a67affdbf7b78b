"""Brains of every medium behind one port, and the contract their replies are held to."""

from podium.agents.acp import AcpAgent
from podium.agents.api import ApiAgent
from podium.agents.contract import ContractedAgent
from podium.agents.failover import FailoverAgent
from podium.agents.headless.claude import ClaudeAgent
from podium.agents.headless.codex import CodexAgent
from podium.agents.headless.command import CommandAgent
from podium.agents.headless.gemini import GeminiAgent
from podium.agents.headless.home import sweep_homes
from podium.agents.headless.opencode import OpencodeAgent
from podium.agents.kit import AgentKit, AgentOptions
from podium.agents.scripted import AgentScript, ScriptedAgent

__all__ = [
    "AcpAgent",
    "AgentKit",
    "AgentOptions",
    "AgentScript",
    "ApiAgent",
    "ClaudeAgent",
    "CodexAgent",
    "CommandAgent",
    "ContractedAgent",
    "FailoverAgent",
    "GeminiAgent",
    "OpencodeAgent",
    "ScriptedAgent",
    "sweep_homes",
]
