"""An agent that plays a script: a real process, so that it can misbehave for real."""

from podium.agents.scripted.agent import ScriptedAgent
from podium.agents.scripted.script import Act, AgentScript, ScriptedTurn

__all__ = ["Act", "AgentScript", "ScriptedAgent", "ScriptedTurn"]
