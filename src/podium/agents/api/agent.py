"""`ApiAgent`: a model of a provider, asked by HTTP, its settings, and the agents named after their makers. It has no process."""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from podium.agents.api.settings import ProviderName, ResolveSecret, choose
from podium.agents.deps import AgentDeps, AgentOptions
from podium.core.model import Json
from podium.core.turns import Reply, Turn


class ApiAgent:
    """Asks Gemini, OpenAI, OpenRouter, Anthropic, or whoever speaks as one of them."""

    def __init__(
        self,
        options: AgentOptions,
        deps: AgentDeps,
        resolve_secret: ResolveSecret,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`resolve_secret` gives the value for a NAME; `sleep` and `chance` pace the repeats.

        Raises `BadInput` when the options name no provider that is known.
        """
        self._choice = choose(options)
        self._env = dict(options.env)
        self._deps = deps
        self._resolve_secret = resolve_secret
        self._sleep = sleep
        self._chance = chance

    @property
    def name(self) -> str:
        return self._choice.agent

    async def ask(self, turn: Turn) -> Reply:
        """As the port has it. Cancelling closes the line to the provider."""
        await _load()
        from podium.agents.api.turn import Pace, take_turn

        key = self._choice.key(self._env, self._resolve_secret)
        pace = Pace(self._sleep, self._chance)
        reply = await take_turn(turn, self._choice, key, self._deps, pace)
        if not turn.own_tools:
            return reply
        # A provider's own search would happen where no gate can stand before it.
        ignored = f"agent {self.name!r} has no tools of its own; not available: {', '.join(turn.own_tools)}"
        return reply.model_copy(update={"warnings": (*reply.warnings, ignored)})


async def _load() -> None:
    """Load the providers' libraries, which takes seconds the first time, beside the event loop."""
    await asyncio.to_thread(importlib.import_module, "podium.agents.api.turn")


class _NamedAgent(ApiAgent):
    """An `ApiAgent` that knows its provider, a model of it, and what its key is called."""

    provider: ClassVar[ProviderName]
    default_model: ClassVar[str]
    key_name: ClassVar[str]

    def __init__(
        self,
        deps: AgentDeps,
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
        agent_options = AgentOptions(
            name=name or self.provider,
            model=model or self.default_model,
            base_url=base_url,
            env={self.key_name: f"secret://{self.key_name}"},
            options={**(options or {}), "provider": self.provider},
        )
        super().__init__(agent_options, deps, resolve_secret)


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
