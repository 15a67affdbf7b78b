"""End of the function-calling loop with a real hook server, and continuation of the conversation after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from podium.core.model import Json
from podium.core.turns import Turn
from tests.unit.contract.function_calling import CALLERS, Beat, Caller, House, note, say, wish

every_api = pytest.mark.parametrize(
    "caller", [each for each in CALLERS if each.name != "scripted"], ids=lambda caller: caller.name
)


class Count(BaseModel):
    """A contract."""

    notes: int


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def _finish(summary: str, **more: Json) -> tuple[str, dict[str, Json]]:
    return "finish", {"summary": summary, **more}


def _wanting(turn: Turn) -> Turn:
    return turn.model_copy(update={"contract": Count})


@pytest.mark.sample(1)
@every_api
async def test_the_payload_of_finish_is_the_payload_of_the_reply(
    caller: Caller, house: House
) -> None:
    done = _finish("One note.", payload={"notes": 1})
    async with caller.cast(house, [wish(note("one"), done)]) as cast:
        reply = await cast.agent.ask(_wanting(house.turn()))
    assert (reply.text, reply.payload, reply.found) == ("One note.", {"notes": 1}, "native")


@pytest.mark.sample(1)
@every_api
async def test_finish_without_the_payload_leaves_it_to_the_words(
    caller: Caller, house: House
) -> None:
    words = '{"notes": 1}'
    async with caller.cast(house, [Beat(calls=(_finish("One."),), words=words)]) as cast:
        reply = await cast.agent.ask(_wanting(house.turn()))
    assert (reply.text, reply.payload, reply.found) == (words, None, "none")


@every_api
async def test_without_a_contract_finish_gives_no_payload(caller: Caller, house: House) -> None:
    done = _finish("One note.", payload={"notes": 1})
    async with caller.cast(house, [wish(done)]) as cast:
        reply = await cast.agent.ask(house.turn())
    assert (reply.text, reply.payload, reply.found) == ("One note.", None, "none")


@every_api
async def test_after_finish_the_conversation_can_go_on(caller: Caller, house: House) -> None:
    beats = [wish(note("one"), _finish("Done.")), say("As I said: one note.")]
    async with caller.cast(house, beats) as cast:
        first = await cast.agent.ask(house.turn())
        assert "as number 1" not in cast.told()
        more = house.turn(number=1, session=first.session)
        second = await cast.agent.ask(more.model_copy(update={"prompt": "How many?"}))
        told = cast.told()
    assert second.text == "As I said: one note."
    assert "as number 1" in told
    assert "How many?" in told
    assert house.done == ["one"]


@pytest.mark.sample(1)
@every_api
async def test_after_a_limit_the_conversation_can_go_on(caller: Caller, house: House) -> None:
    beats = [
        Beat(calls=(note("one"),), words="First."),
        Beat(calls=(note("two"), note("three")), words="Then."),
        say("Enough."),
    ]
    async with caller.cast(house, beats) as cast:
        first = await cast.agent.ask(house.turn(tool_calls=2))
        second = await cast.agent.ask(house.turn(number=1, session=first.session))
        told = cast.told()
    assert first.stopped is not None
    assert first.text == "First.\n\nThen."
    assert house.done == ["one", "two"]
    assert "limit reached" in told
    assert (second.text, second.stopped) == ("Enough.", None)


@every_api
async def test_an_agent_at_its_limit_may_still_finish(caller: Caller, house: House) -> None:
    beats = [wish(note("one"), _finish("One note.")), say("Never said.")]
    async with caller.cast(house, beats) as cast:
        reply = await cast.agent.ask(house.turn(tool_calls=1))
    assert (reply.text, reply.stopped) == ("One note.", None)


@every_api
async def test_finish_behind_a_call_that_waited_ends_the_turn_without_another_request(
    caller: Caller, house: House
) -> None:
    beats = [wish(("send_mail", {"text": "mail"}), _finish("Sent.")), say("Never said.")]
    async with caller.cast(house, beats) as cast:
        first = await cast.agent.ask(house.turn())
        before = cast.told()
        await house.approve(first.waiting_approvals[0])
        second = await cast.agent.ask(house.turn(number=1, session=first.session))
        assert cast.told() == before
    assert house.done == ["mail"]
    assert (second.text, second.waiting_approvals) == ("Sent.", ())
