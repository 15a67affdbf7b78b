"""API models: brains reached by HTTP alone, with Podium's own function-calling loop."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
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

export_lazily(
    __name__,
    {
        "ApiAgent": "agent",
        "ApiSettings": "choosing",
        "Choice": "choosing",
        "choose": "choosing",
        "AnthropicAgent": "named",
        "GeminiAgent": "named",
        "OpenAiAgent": "named",
        "OpenRouterAgent": "named",
    },
)
