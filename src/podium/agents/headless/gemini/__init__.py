"""Gemini CLI, behind its hook and a policy."""

from podium.agents.headless.gemini.agent import GeminiCliAgent

__all__ = ["GeminiCliAgent"]
