"""End of the function-calling loop with a real hook server, and continuation of the conversation after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from podium.core.model import Json
from podium.core.turns import Turn
from tests.unit.contract.function_calling_harness import (
    CALLERS,
    Caller,
    CallingHarness,
    ModelTurn,
    model_turn,
    note,
    say,
)

every_api = pytest.mark.parametrize(
    "caller", [item for item in CALLERS if item.name != "scripted"], ids=lambda caller: caller.name
)


class Count(BaseModel):
    """A contract."""

    notes: int


@pytest.fixture
def harness(tmp_path: Path) -> CallingHarness:
    return CallingHarness(tmp_path)


def _finish(summary: str, **more: Json) -> tuple[str, dict[str, Json]]:
    return "finish", {"summary": summary, **more}


def _wanting(turn: Turn) -> Turn:
    return turn.model_copy(update={"contract": Count})


@pytest.mark.sample(1)
@every_api
async def test_the_payload_of_finish_is_the_payload_of_the_reply(
    caller: Caller, harness: CallingHarness
) -> None:
    done = _finish("One note.", payload={"notes": 1})
    async with caller.cast(harness, [model_turn(note("one"), done)]) as cast:
        reply = await cast.agent.ask(_wanting(harness.turn()))
    assert (reply.text, reply.payload, reply.found) == ("One note.", {"notes": 1}, "native")


@pytest.mark.sample(1)
@every_api
async def test_finish_without_the_payload_leaves_it_to_the_words(
    caller: Caller, harness: CallingHarness
) -> None:
    words = '{"notes": 1}'
    async with caller.cast(harness, [ModelTurn(calls=(_finish("One."),), words=words)]) as cast:
        reply = await cast.agent.ask(_wanting(harness.turn()))
    assert (reply.text, reply.payload, reply.found) == (words, None, "none")


@every_api
async def test_without_a_contract_finish_gives_no_payload(
    caller: Caller, harness: CallingHarness
) -> None:
    done = _finish("One note.", payload={"notes": 1})
    async with caller.cast(harness, [model_turn(done)]) as cast:
        reply = await cast.agent.ask(harness.turn())
    assert (reply.text, reply.payload, reply.found) == ("One note.", None, "none")


@every_api
async def test_after_finish_the_conversation_can_go_on(
    caller: Caller, harness: CallingHarness
) -> None:
    heartbeats = [model_turn(note("one"), _finish("Done.")), say("As I said: one note.")]
    async with caller.cast(harness, heartbeats) as cast:
        first = await cast.agent.ask(harness.turn())
        assert "as number 1" not in cast.last_prompt()
        more = harness.turn(number=1, session=first.session)
        second = await cast.agent.ask(more.model_copy(update={"prompt": "How many?"}))
        last_prompt = cast.last_prompt()
    assert second.text == "As I said: one note."
    assert "as number 1" in last_prompt
    assert "How many?" in last_prompt
    assert harness.done == ["one"]


@pytest.mark.sample(1)
@every_api
async def test_after_a_limit_the_conversation_can_go_on(
    caller: Caller, harness: CallingHarness
) -> None:
    heartbeats = [
        ModelTurn(calls=(note("one"),), words="First."),
        ModelTurn(calls=(note("two"), note("three")), words="Then."),
        say("Enough."),
    ]
    async with caller.cast(harness, heartbeats) as cast:
        first = await cast.agent.ask(harness.turn(tool_calls=2))
        second = await cast.agent.ask(harness.turn(number=1, session=first.session))
        last_prompt = cast.last_prompt()
    assert first.stopped is not None
    assert first.text == "First.\n\nThen."
    assert harness.done == ["one", "two"]
    assert "limit reached" in last_prompt
    assert (second.text, second.stopped) == ("Enough.", None)


@every_api
async def test_an_agent_at_its_limit_may_still_finish(
    caller: Caller, harness: CallingHarness
) -> None:
    heartbeats = [model_turn(note("one"), _finish("One note.")), say("Never said.")]
    async with caller.cast(harness, heartbeats) as cast:
        reply = await cast.agent.ask(harness.turn(tool_calls=1))
    assert (reply.text, reply.stopped) == ("One note.", None)


@every_api
async def test_finish_behind_a_call_that_waited_ends_the_turn_without_another_request(
    caller: Caller, harness: CallingHarness
) -> None:
    heartbeats = [model_turn(("send_mail", {"text": "mail"}), _finish("Sent.")), say("Never said.")]
    async with caller.cast(harness, heartbeats) as cast:
        first = await cast.agent.ask(harness.turn())
        before = cast.last_prompt()
        await harness.approve(first.waiting_approvals[0])
        second = await cast.agent.ask(harness.turn(number=1, session=first.session))
        assert cast.last_prompt() == before
    assert harness.done == ["mail"]
    assert (second.text, second.waiting_approvals) == ("Sent.", ())
