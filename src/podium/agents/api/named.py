"""API agents by the names of their makers, ready for use from Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from podium.agents.api.agent import ApiAgent
from podium.agents.api.choosing import ProviderName, ResolveSecret
from podium.agents.kit import AgentKit, AgentOptions
from podium.domain.model import Json


class _NamedAgent(ApiAgent):
    """An `ApiAgent` that knows its provider, a model of it, and what its key is called."""

    provider: ClassVar[ProviderName]
    default_model: ClassVar[str]
    key_name: ClassVar[str]

    def __init__(
        self,
        kit: AgentKit,
        resolve_secret: ResolveSecret,
        *,
        name: str = "",
        model: str = "",
        base_url: str = "",
        options: Mapping[str, Json] | None = None,
    ) -> None:
        """`resolve_secret` is asked for the key by `key_name`, such as `os.environ.__getitem__`.

        Empty: the provider's name, `default_model`, the provider's own address. `options` are the
        fields of `ApiSettings`. Raises `BadInput` for options that cannot be used.
        """
        given = AgentOptions(
            name=name or self.provider,
            model=model or self.default_model,
            base_url=base_url,
            env={self.key_name: f"secret://{self.key_name}"},
            options={**(options or {}), "provider": self.provider},
        )
        super().__init__(given, kit, resolve_secret)


class GeminiAgent(_NamedAgent):
    """Gemini, by Google's own API."""

    provider = "google"
    default_model = "gemini-2.5-flash"
    key_name = "GEMINI_API_KEY"


class OpenAiAgent(_NamedAgent):
    """OpenAI's models, and whoever else speaks as OpenAI does at another `base_url`."""

    provider = "openai"
    default_model = "gpt-4.1"
    key_name = "OPENAI_API_KEY"


class OpenRouterAgent(_NamedAgent):
    """Models of many makers, through OpenRouter."""

    provider = "openrouter"
    default_model = "openai/gpt-4.1"
    key_name = "OPENROUTER_API_KEY"


class AnthropicAgent(_NamedAgent):
    """Claude, by Anthropic's own API."""

    provider = "anthropic"
    default_model = "claude-sonnet-4-5"
    key_name = "ANTHROPIC_API_KEY"
