"""codex, asked through its app-server."""

from podium.agents.headless.codex.agent import CodexAgent

__all__ = ["CodexAgent"]
