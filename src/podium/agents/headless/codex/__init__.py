"""codex, asked through its app-server."""

from podium.agents.headless.codex.agent import CodexCliAgent

__all__ = ["CodexCliAgent"]
