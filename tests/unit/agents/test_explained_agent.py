"""Settings that a person can change, as named in the errors of agents that are programs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.kinds import ABOUT, ExplainedAgent, public_address
from podium.core.decisions import Usage
from podium.core.errors import (
    AgentNotLoggedIn,
    AgentUnavailable,
    PodiumError,
    RateLimited,
    ToolMissing,
)
from podium.core.turns import Turn
from podium.testing import FakeAgent

TURN = Turn(run_id="run_1", step_key="a#0", role="dev", prompt="hello", workspace="/tmp")


async def trouble(
    error: PodiumError, options: AgentOptions, login_file: Path | None = None
) -> PodiumError:
    agent = ExplainedAgent(
        FakeAgent([error], name=options.name), options, ABOUT["claude"], login_file
    )
    with pytest.raises(type(error)) as caught:
        await agent.ask(TURN)
    assert caught.value is error
    return error


async def test_the_address_that_was_tried_is_named_and_what_was_used_is_kept() -> None:
    error = AgentUnavailable("cannot reach its model")
    error.usage = Usage(turns=1)
    options = AgentOptions(name="brain", base_url="http://ann:pw-1234@127.0.0.1:9/v1?key=k-5678")
    text = str(await trouble(error, options))
    assert text == "cannot reach its model; the address was http://127.0.0.1:9/v1"
    assert error.usage == Usage(turns=1)


async def test_an_address_in_a_variable_counts_too() -> None:
    env = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    error = await trouble(AgentUnavailable("down"), AgentOptions(name="brain", env=env))
    assert str(error) == "down; the address was http://127.0.0.1:9"


async def test_at_the_providers_own_address_nothing_is_added() -> None:
    assert str(await trouble(AgentUnavailable("down"), AgentOptions(name="brain"))) == "down"


async def test_the_secret_that_was_used_is_named_with_how_to_set_it() -> None:
    options = AgentOptions(name="brain", env={"ANTHROPIC_API_KEY": "secret://MODEL_KEY"})
    text = str(await trouble(AgentNotLoggedIn("not logged in"), options))
    assert "the key was ANTHROPIC_API_KEY from secret://MODEL_KEY" in text
    assert "set MODEL_KEY in Podium's environment" in text


async def test_a_key_in_clear_is_named_and_not_shown() -> None:
    options = AgentOptions(name="brain", env={"ANTHROPIC_API_KEY": "sk-in-clear-123"})
    text = str(await trouble(AgentNotLoggedIn("no"), options))
    assert "ANTHROPIC_API_KEY in the agent's `env`" in text
    assert "sk-in-clear-123" not in text


async def test_the_login_that_was_copied_is_named(tmp_path: Path) -> None:
    file = tmp_path / ".credentials.json"
    options = AgentOptions(name="brain")
    assert "without a key or a login" in str(await trouble(AgentNotLoggedIn("no"), options, file))
    file.write_text("{}")
    assert f"a copy of {file}" in str(await trouble(AgentNotLoggedIn("no"), options, file))


async def test_a_missing_program_can_be_named_with_command() -> None:
    error = await trouble(ToolMissing("'claude' not found on PATH"), AgentOptions(name="brain"))
    assert "`command: [/path/to/it]` for agent 'brain'" in str(error)


async def test_other_errors_stay_as_they_are() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    error = await trouble(RateLimited("slow down", at), AgentOptions(name="b", base_url="http://x"))
    assert str(error) == "slow down"


def test_an_address_nobody_can_read_is_not_shown() -> None:
    assert public_address("http://[") == "an invalid address"
