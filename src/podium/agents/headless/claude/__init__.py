"""Claude Code, asked over its own protocol."""

from podium.agents.headless.claude.agent import ClaudeAgent

__all__ = ["ClaudeAgent"]
