"""API models: brains reached by HTTP alone, with Podium's own function-calling loop."""

from podium.agents.api.agent import ApiAgent
from podium.agents.api.choosing import ApiSettings, Choice, choose
from podium.agents.api.named import AnthropicAgent, GeminiAgent, OpenAiAgent, OpenRouterAgent

__all__ = [
    "AnthropicAgent",
    "ApiAgent",
    "ApiSettings",
    "Choice",
    "GeminiAgent",
    "OpenAiAgent",
    "OpenRouterAgent",
    "choose",
]
