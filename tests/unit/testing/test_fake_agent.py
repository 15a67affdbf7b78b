"""The agent whose answers are written down beforehand."""

from __future__ import annotations

import pytest

from podium.core.errors import AgentLost, TimedOut
from podium.core.turns import Reply, Turn
from podium.ports import Agent
from podium.testing import FakeAgent


def a_turn(prompt: str = "hello") -> Turn:
    return Turn(run_id="run_a", step_key="ask", role="developer", prompt=prompt, workspace="w")


async def test_replies_come_in_order_and_turns_are_remembered() -> None:
    agent: Agent = (fake := FakeAgent(["yes", Reply(text="no", agent="other")], name="ada"))
    assert await agent.ask(a_turn("first")) == Reply(text="yes", agent="ada")
    assert await agent.ask(a_turn("second")) == Reply(text="no", agent="other")
    assert [turn.prompt for turn in fake.turns] == ["first", "second"]


async def test_a_reply_may_be_a_function_of_the_turn() -> None:
    agent = FakeAgent([lambda turn: Reply(text=turn.prompt.upper())])
    assert (await agent.ask(a_turn("loud"))).text == "LOUD"


async def test_a_prepared_error_is_raised() -> None:
    agent = FakeAgent([TimedOut("too slow"), "here again"])
    with pytest.raises(TimedOut):
        await agent.ask(a_turn())
    assert (await agent.ask(a_turn())).text == "here again"


async def test_an_agent_without_replies_is_lost_and_not_silent() -> None:
    with pytest.raises(AgentLost, match="'fake' has no reply left"):
        await FakeAgent().ask(a_turn())
