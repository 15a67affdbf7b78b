"""API models: brains reached by HTTP alone, with Podium's own function-calling loop."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.agents.api.agent import (
        AnthropicAgent,
        ApiAgent,
        GeminiAgent,
        OpenAiAgent,
        OpenRouterAgent,
    )
    from podium.agents.api.settings import ApiSettings, Choice, choose

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
        "ApiSettings": "settings",
        "Choice": "settings",
        "choose": "settings",
        "AnthropicAgent": "agent",
        "GeminiAgent": "agent",
        "OpenAiAgent": "agent",
        "OpenRouterAgent": "agent",
    },
)
