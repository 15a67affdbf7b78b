"""An agent that plays a script: a real process, so that it can misbehave for real."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.agents.scripted.agent import ScriptedAgent
    from podium.agents.scripted.script import Act, AgentScript, ScriptedTurn

__all__ = [
    "Act",
    "AgentScript",
    "ScriptedAgent",
    "ScriptedTurn",
]

export_lazily(
    __name__,
    {
        "ScriptedAgent": "agent",
        "Act": "script",
        "AgentScript": "script",
        "ScriptedTurn": "script",
    },
)
