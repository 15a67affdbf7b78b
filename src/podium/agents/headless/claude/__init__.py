"""Claude Code, asked over its own protocol."""

from podium.agents.headless.claude.agent import ClaudeCliAgent

__all__ = ["ClaudeCliAgent"]
