"""Failover: who is asked next, when, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podium.agents import FailoverAgent
from podium.core.decisions import Usage
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentUnavailable,
    BadInput,
    PodiumError,
    RateLimited,
    ReplyInvalid,
    TimedOut,
    ToolMissing,
)
from podium.core.events import AgentSwitched
from podium.core.turns import Reply, Turn, TurnLimits
from podium.ports import EventQuery
from podium.testing import FakeAgent, MemoryJournal

TURN = Turn(run_id="run_1", step_key="ask#0", role="tester", prompt="go", workspace="/w")
EARLY = datetime(2026, 11, 15, 12, tzinfo=UTC)
LATE = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "trouble",
    [
        AgentUnavailable("down"),
        RateLimited("enough", LATE),
        AgentNotLoggedIn("who?"),
        ToolMissing("not here"),
    ],
)
async def test_the_next_is_asked_on_outage_quota_or_login(trouble: PodiumError) -> None:
    journal = MemoryJournal()
    first, second = FakeAgent([trouble], "one"), FakeAgent([Reply(text="here")], "two")
    reply = await FailoverAgent([first, second], journal).ask(TURN)
    assert (reply.text, reply.agent) == ("here", "two")
    (switched,) = [event.body for event in await journal.read(EventQuery(run_id="run_1"))]
    assert switched == AgentSwitched(
        role="tester", agent="one", next_agent="two", reason=str(trouble)
    )


@pytest.mark.parametrize(
    "trouble",
    [AgentLost("crashed"), TimedOut("slow"), AgentRefused("no"), ReplyInvalid("no JSON")],
)
async def test_nobody_else_is_asked_about_any_other_trouble(trouble: PodiumError) -> None:
    second = FakeAgent(["never"], "two")
    with pytest.raises(type(trouble)):
        await FailoverAgent([FakeAgent([trouble], "one"), second], MemoryJournal()).ask(TURN)
    assert second.turns == []


async def test_a_conversation_stays_with_the_agent_that_began_it() -> None:
    first = FakeAgent([AgentUnavailable("down"), "not asked"], "one")
    second = FakeAgent([Reply(text="a", session="s1"), Reply(text="b", session="s1")], "two")
    role = FailoverAgent([first, second], MemoryJournal())
    begun = await role.ask(TURN)
    await role.ask(TURN.model_copy(update={"session": begun.session}))
    assert [turn.session for turn in second.turns] == [None, "s1"]
    assert len(first.turns) == 1


async def test_a_conversation_whose_agent_is_gone_begins_anew_with_another() -> None:
    first = FakeAgent([Reply(text="a", session="s1"), AgentUnavailable("down")], "one")
    second = FakeAgent(["b"], "two")
    role = FailoverAgent([first, second], MemoryJournal())
    begun = await role.ask(TURN)
    reply = await role.ask(TURN.model_copy(update={"session": begun.session}))
    assert reply.agent == "two"
    assert [turn.session for turn in second.turns] == [None]


async def test_when_nobody_answers_the_trouble_that_passes_first_is_reported() -> None:
    late, early = RateLimited("enough", LATE), RateLimited("too much", EARLY)
    agents = [FakeAgent([AgentNotLoggedIn("who?")], "one")]
    agents += [FakeAgent([late], "two"), FakeAgent([early], "three")]
    with pytest.raises(RateLimited, match=r"too much \(before that: who\?; enough\)") as caught:
        await FailoverAgent(agents, MemoryJournal()).ask(TURN)
    assert caught.value.retry_at == EARLY


async def test_what_was_used_in_vain_is_counted() -> None:
    trouble = AgentUnavailable("down")
    trouble.usage = Usage(input_tokens=10, turns=1)
    answer = Reply(text="here", usage=Usage(input_tokens=5, turns=1))
    agents = [FakeAgent([trouble], "one"), FakeAgent([answer], "two")]
    reply = await FailoverAgent(agents, MemoryJournal()).ask(TURN)
    assert (reply.usage.input_tokens, reply.usage.turns) == (15, 2)


async def test_the_seconds_of_a_turn_are_for_all_of_them() -> None:
    second = FakeAgent(["here"], "two")
    agents = [FakeAgent([AgentUnavailable("down")], "one"), second]
    turn = TURN.model_copy(update={"limits": TurnLimits(seconds=30)})
    await FailoverAgent(agents, MemoryJournal()).ask(turn)
    left = second.turns[0].limits.seconds
    assert left is not None
    assert left < 30


async def test_a_session_of_somebody_else_is_refused() -> None:
    role = FailoverAgent([FakeAgent(["a"])], MemoryJournal())
    with pytest.raises(BadInput, match="not a conversation"):
        await role.ask(TURN.model_copy(update={"session": "garbage"}))


def test_a_role_without_agents_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one"):
        FailoverAgent([], MemoryJournal())


@pytest.mark.parametrize("trouble", [AgentRefused("no"), AgentLost("crashed")])
async def test_usage_spent_in_vain_is_reported_with_the_next_agents_trouble(
    trouble: PodiumError,
) -> None:
    down = AgentUnavailable("down")
    down.usage = Usage(input_tokens=10, turns=1)
    agents = [FakeAgent([down], "one"), FakeAgent([trouble], "two")]
    with pytest.raises(type(trouble)) as caught:
        await FailoverAgent(agents, MemoryJournal()).ask(TURN)
    assert caught.value.usage is not None
    assert caught.value.usage.input_tokens == 10


async def test_a_known_reset_is_waited_for_rather_than_an_outage() -> None:
    agents = [FakeAgent([AgentUnavailable("down")], "one")]
    agents += [FakeAgent([RateLimited("enough", EARLY)], "two")]
    with pytest.raises(RateLimited) as caught:
        await FailoverAgent(agents, MemoryJournal()).ask(TURN)
    assert caught.value.retry_at == EARLY
