"""A model that gives no reading is replaced by the embedded one, which says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podium.core.decisions import Usage
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    BadInput,
    Interrupted,
    PodiumError,
    RateLimited,
    ReplyInvalid,
    TimedOut,
)
from podium.core.turns import Reply, Turn
from podium.jobs.operator.judgement.model_classifier import ModelClassifier, WithFallback
from podium.jobs.operator.models import Intent, Message, Reading
from podium.testing import FakeAgent
from podium.testing.agents import PreparedReply
from tests.soaking import in_soak
from tests.unit.operator.judgement.model_harness import PACK, answer, message_of, reader


class Written:
    """A classifier with one reading."""

    name = "embedded"
    usage = Usage()

    def __init__(self, reasoning: str = "The words name a tool.") -> None:
        self.reading = Reading(intent=Intent.CLARIFY, confidence=0.4, reasoning=reasoning)
        self.asked: list[Message] = []

    async def read(self, message: Message) -> Reading:
        self.asked.append(message)
        return self.reading


def behind(reply: PreparedReply, other: Written) -> WithFallback:
    return WithFallback(ModelClassifier(FakeAgent([reply], name="clever"), PACK), other)


async def test_a_model_that_answers_is_believed_and_nobody_else_is_asked() -> None:
    other = Written()
    reading = await behind(Reply(text="", payload=answer()), other).read(
        message_of("new lead: Sarah")
    )
    assert (reading.intent, reading.reasoning) == (Intent.EXECUTE, "A new lead.")
    assert not other.asked


@pytest.mark.parametrize(
    "trouble",
    [
        AgentLost("the line went away"),
        RateLimited("asked too much"),
        TimedOut("no answer within 20 s"),
        AgentRefused("I would rather not"),
        AgentNotLoggedIn("no such key"),
        ReplyInvalid("There is no JSON object in the reply."),
    ],
    ids=lambda trouble: type(trouble).__name__,
)
async def test_without_an_answer_the_other_reads_and_says_why(trouble: PodiumError) -> None:
    trouble.usage = Usage(input_tokens=7, turns=1)
    other = Written()
    both = behind(trouble, other)
    reading = await both.read(message_of("hello"))
    assert reading.intent is Intent.CLARIFY
    assert reading.reasoning == (
        "The words name a tool (read by 'embedded', because the model gave no answer: "
        f"{str(trouble).rstrip('.')})"
    )
    assert both.usage.input_tokens == 7
    assert both.name == "embedded"


async def test_the_name_is_that_of_whoever_read_in_this_task() -> None:
    agent = FakeAgent([AgentLost("down"), Reply(text="", payload=answer())], name="clever")
    both = WithFallback(ModelClassifier(agent, PACK), Written())

    async def read() -> str:
        await both.read(message_of("hello"))
        return both.name

    assert [*await asyncio.gather(read(), read())] == ["embedded", "clever"]
    assert both.name == "clever"


async def test_reason_is_alone_where_the_other_gave_none_and_is_short() -> None:
    reading = await behind(AgentLost("gone\n" * 500), Written("")).read(message_of("hello"))
    assert reading.reasoning.startswith(
        "read by 'embedded', because the model gave no answer: gone"
    )
    assert len(reading.reasoning) < 300
    assert "\n" not in reading.reasoning


@pytest.mark.parametrize("error", [BadInput("a bad contract"), Interrupted("Ctrl-C")])
async def test_what_another_reading_does_not_mend_is_raised(error: PodiumError) -> None:
    with pytest.raises(type(error)):
        await behind(error, Written()).read(message_of("hello"))


async def test_cancelling_is_not_taken_for_a_model_that_is_down() -> None:
    other, asked = Written(), asyncio.Event()

    async def wait(turn: Turn) -> Reply:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    reading = asyncio.create_task(behind(wait, other).read(message_of("hello")))
    await asked.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not other.asked


async def test_a_broken_other_is_not_covered_up_by_the_model() -> None:
    class Broken(Written):
        async def read(self, message: Message) -> Reading:
            raise AgentLost("the other is broken too")

    with pytest.raises(AgentLost, match="broken too"):
        await behind(AgentLost("down"), Broken()).read(message_of("hello"))


@pytest.mark.parametrize(
    "step",
    [
        in_soak({"status": 500}),
        in_soak({"fault": "hang"}),
        {"text": "no"},
        {"status": 402, "message": "no credit"},
    ],
    ids=["down", "hanging", "malformed", "no credit"],
)
async def test_an_openrouter_in_trouble_is_covered_end_to_end(
    tmp_path: Path, step: dict[str, object]
) -> None:
    async with reader(tmp_path, step, seconds=3.0) as (model, _, _):
        reading = await WithFallback(model, Written()).read(message_of("hello"))
    assert reading.intent is Intent.CLARIFY
    assert "because the model gave no answer: " in reading.reasoning
