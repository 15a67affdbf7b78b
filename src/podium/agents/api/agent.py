"""`ApiAgent`: a model of a provider, asked by HTTP. It has no process and no hands of its own."""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Awaitable, Callable

from podium.agents.api.choosing import ResolveSecret, choose
from podium.agents.kit import AgentKit, AgentOptions
from podium.domain.asking import Reply, Turn


class ApiAgent:
    """Asks Gemini, OpenAI, OpenRouter, Anthropic, or whoever speaks as one of them."""

    def __init__(
        self,
        options: AgentOptions,
        kit: AgentKit,
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
        self._kit = kit
        self._resolve_secret = resolve_secret
        self._sleep = sleep
        self._chance = chance

    @property
    def name(self) -> str:
        return self._choice.agent

    async def ask(self, turn: Turn) -> Reply:
        """As the port has it. Cancelling closes the line to the provider."""
        await _load()
        from podium.agents.api.turn_taking import Pace, take_turn

        key = self._choice.key(self._env, self._resolve_secret)
        pace = Pace(self._sleep, self._chance)
        reply = await take_turn(turn, self._choice, key, self._kit, pace)
        if not turn.own_tools:
            return reply
        # A provider's own search would happen where no gate can stand before it.
        ignored = (
            f"agent {self.name!r} has no tools of its own: {', '.join(turn.own_tools)} not given"
        )
        return reply.model_copy(update={"warnings": (*reply.warnings, ignored)})


async def _load() -> None:
    """Load the providers' libraries, which takes seconds the first time, beside the event loop."""
    await asyncio.to_thread(importlib.import_module, "podium.agents.api.turn_taking")
