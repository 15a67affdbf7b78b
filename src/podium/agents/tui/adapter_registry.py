"""Adapters by kind of program."""

from __future__ import annotations

from podium.agents.deps import AgentOptions
from podium.agents.tui.adapter import Adapter
from podium.core.errors import BadInput

ADAPTERS = ("claude", "codex", "gemini", "generic")


def adapter_for(kind: str, options: AgentOptions) -> Adapter:
    """Raises `BadInput` for a kind that has none, and for options that a program does not have."""
    # Late: each brings along all that its CLI needs when it is asked without a terminal.
    match kind:
        case "claude":
            from podium.agents.tui.claude import ClaudeTui

            return ClaudeTui()
        case "codex":
            from podium.agents.tui.codex import CodexTui

            return CodexTui()
        case "gemini":
            from podium.agents.tui.gemini import GeminiTui

            return GeminiTui()
        case "generic":
            from podium.agents.tui.generic import GenericTui

            return GenericTui(options)
    raise BadInput(f"{kind!r} is no program on a terminal; kinds: {', '.join(ADAPTERS)}")
