"""Brains of every medium behind one port, and the contract their replies are held to."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.agents.acp import AcpAgent
    from podium.agents.api import (
        AnthropicAgent,
        ApiAgent,
        GeminiAgent,
        OpenAiAgent,
        OpenRouterAgent,
    )
    from podium.agents.contract import ContractedAgent
    from podium.agents.deps import AgentDeps, AgentOptions
    from podium.agents.failover import FailoverAgent
    from podium.agents.headless.claude import ClaudeCliAgent
    from podium.agents.headless.codex import CodexCliAgent
    from podium.agents.headless.command_agent import CommandAgent
    from podium.agents.headless.gemini import GeminiCliAgent
    from podium.agents.headless.home import sweep_homes
    from podium.agents.headless.opencode import OpencodeCliAgent
    from podium.agents.scripted import AgentScript, ScriptedAgent

__all__ = [
    "AcpAgent",
    "AgentDeps",
    "AgentOptions",
    "AgentScript",
    "AnthropicAgent",
    "ApiAgent",
    "ClaudeCliAgent",
    "CodexCliAgent",
    "CommandAgent",
    "ContractedAgent",
    "FailoverAgent",
    "GeminiAgent",
    "GeminiCliAgent",
    "OpenAiAgent",
    "OpenRouterAgent",
    "OpencodeCliAgent",
    "ScriptedAgent",
    "sweep_homes",
]

export_lazily(
    __name__,
    {
        "AcpAgent": "acp",
        "AnthropicAgent": "api",
        "ApiAgent": "api",
        "GeminiAgent": "api",
        "OpenAiAgent": "api",
        "OpenRouterAgent": "api",
        "ContractedAgent": "contract",
        "FailoverAgent": "failover",
        "ClaudeCliAgent": "headless.claude",
        "CodexCliAgent": "headless.codex",
        "CommandAgent": "headless.command_agent",
        "GeminiCliAgent": "headless.gemini",
        "sweep_homes": "headless.home",
        "OpencodeCliAgent": "headless.opencode",
        "AgentDeps": "deps",
        "AgentOptions": "deps",
        "AgentScript": "scripted",
        "ScriptedAgent": "scripted",
    },
)
