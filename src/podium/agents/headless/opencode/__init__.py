"""opencode, behind a plugin of ours."""

from podium.agents.headless.opencode.agent import OpencodeCliAgent

__all__ = ["OpencodeCliAgent"]
