"""opencode, behind a plugin of ours."""

from podium.agents.headless.opencode.agent import OpencodeAgent

__all__ = ["OpencodeAgent"]
