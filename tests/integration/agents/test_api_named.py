"""The ready-made API agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.agents.api import (
    AnthropicAgent,
    ApiAgent,
    GeminiAgent,
    OpenAiAgent,
    OpenRouterAgent,
)
from podium.core.errors import AgentNotLoggedIn, BadInput
from podium.testing.modelserver import ModelServer
from tests.integration.agents.api_harness import KEY, ApiHarness, script

Named = type[GeminiAgent] | type[OpenAiAgent] | type[OpenRouterAgent] | type[AnthropicAgent]

every_named = pytest.mark.parametrize(
    "kind", [GeminiAgent, OpenAiAgent, OpenRouterAgent, AnthropicAgent]
)


@every_named
async def test_a_named_agent_needs_a_key_and_nothing_else(kind: Named, tmp_path: Path) -> None:
    async with ModelServer(script(hello=["Good morning."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, kind.provider)
        agent = kind(harness.deps(), {kind.key_name: KEY}.__getitem__, base_url=harness.base_url)
        reply = await agent.ask(harness.turn("SCRIPT:hello"))
        asked = server.requests[0]
    assert isinstance(agent, ApiAgent)
    assert (reply.text, reply.agent) == ("Good morning.", kind.provider)
    assert kind.default_model in f"{asked.path} {asked.body}"
    assert reply.usage.complete, "the price of the default model is known"


@every_named
async def test_a_key_that_is_not_there_is_asked_for_by_its_name(
    kind: Named, tmp_path: Path
) -> None:
    async with ModelServer(script(hello=["Hi."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, kind.provider)
        agent = kind(harness.deps(), dict[str, str]().__getitem__, base_url=harness.base_url)
        with pytest.raises(AgentNotLoggedIn, match=kind.key_name):
            await agent.ask(harness.turn("SCRIPT:hello"))


async def test_options_that_nobody_knows_are_refused_at_once(tmp_path: Path) -> None:
    async with ModelServer(script(hello=["Hi."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, "google")
        with pytest.raises(BadInput, match="warmth"):
            GeminiAgent(harness.deps(), str, options={"warmth": 3})
