"""API models: brains reached by HTTP alone, with Podium's own function-calling loop."""

from podium.agents.api.agent import ApiAgent
from podium.agents.api.choosing import ApiSettings, Choice, choose

__all__ = ["ApiAgent", "ApiSettings", "Choice", "choose"]
