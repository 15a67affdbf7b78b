"""Answers that are longer than what is kept: no message loses its middle without a word."""

from __future__ import annotations

import pytest

from podium.agents.contract import ContractedAgent, read_messages
from podium.agents.contract.messages import MAX_ANSWER
from podium.core.errors import ReplyInvalid
from podium.core.turns import AwaitedMessage, MessageBlock, Turn, block_of
from podium.testing import FakeAgent

LINE = "y" * 99 + "\n"


def awaited(*, or_words: bool = False) -> AwaitedMessage:
    return AwaitedMessage(
        sender="PLANNER",
        types=("plan",),
        task="T",
        nonce="12345678",
        or_words=or_words,
        longest_seconds=60.0,
    )


def plan(body: str) -> str:
    return block_of(MessageBlock(to="EXECUTER", type="plan", id=awaited().id, body=body))


async def kept(text: str, *, or_words: bool = False) -> str:
    turn = Turn(
        run_id="run_1",
        step_key="turn",
        role="planner",
        prompt="plan it",
        workspace="w",
        awaits=awaited(or_words=or_words),
    )
    return (await ContractedAgent(FakeAgent([text])).ask(turn)).text


async def test_a_long_message_is_handed_on_to_the_byte() -> None:
    body = LINE * 9_000 + "end"

    (message,) = read_messages(await kept(f"So:\n{plan(body)}")).messages

    assert message.body == body


async def test_of_words_without_measure_before_a_message_the_end_is_kept() -> None:
    text = await kept(f"{LINE * 50_000}{plan('1. look')}\n")

    assert len(text) <= MAX_ANSWER
    assert [message.body for message in read_messages(text).messages] == ["1. look"]


@pytest.mark.parametrize("or_words", [False, True])
async def test_a_message_that_there_is_no_room_for_is_refused_and_not_cut(or_words: bool) -> None:
    with pytest.raises(ReplyInvalid, match="write long text to a file"):
        await kept(plan(LINE * 50_000), or_words=or_words)


async def test_words_that_are_the_report_are_cut_in_their_middle() -> None:
    text = await kept(LINE * 50_000 + "Done.", or_words=True)

    assert "characters omitted" in text
    assert text.endswith("Done.")


async def test_what_a_message_quotes_is_not_taken_for_it_when_its_beginning_is_cut_off() -> None:
    quoting = plan(f"```\n{LINE * 3_000}{plan('a draft')}\n```\n{LINE * 3_000}as it is meant")

    with pytest.raises(ReplyInvalid):
        await kept(f"{quoting}\n{LINE * 8_000}")


async def test_words_that_only_speak_of_messages_are_cut_like_other_words() -> None:
    text = await kept(f"no [[POLI:MSG was needed\n{LINE * 50_000}", or_words=True)

    assert len(text) < MAX_ANSWER
