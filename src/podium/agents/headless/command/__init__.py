"""Any program, asked by a command line."""

from podium.agents.headless.command.agent import CommandAgent

__all__ = ["CommandAgent"]
