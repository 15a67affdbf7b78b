"""State that a turn's hook server recovers from before a crash."""

from __future__ import annotations

from typing import Any

import pytest

from podium.core.decisions import Effect, Usage
from podium.core.errors import NotPossibleNow
from podium.core.events import EventBody, ModelAnswered, RunRetried, ToolRefused, UsageRecorded
from podium.core.turns import ModelAnswer, Turn
from podium.sandbox import HookServer
from podium.sandbox.hook_state import TurnMemory, memory_of
from podium.testing import MemoryJournal
from tests.integration.sandbox.door_harness import TURN, DoorHarness


def _answer(number: int, request: str = "r", **more: Any) -> ModelAnswer:
    return ModelAnswer(number=number, request=request, kept={"said": number}, **more)


async def _journal(*answers: ModelAnswer, turn: Turn = TURN, agent: str = "api") -> MemoryJournal:
    journal = MemoryJournal()
    for answer in answers:
        await journal.append(turn.run_id, _answered(answer, turn, agent))
    return journal


def _answered(answer: ModelAnswer, turn: Turn = TURN, agent: str = "api") -> ModelAnswered:
    return ModelAnswered(
        step=turn.step_key, asking=turn.asking, role=turn.role, agent=agent, answer=answer
    )


def test_an_answer_is_known_by_its_number_and_its_request() -> None:
    memory = TurnMemory({0: _answer(0, "first"), 1: _answer(1, "second")})
    assert memory.answer(0, "first") == _answer(0, "first")
    assert memory.answer(1, "second") == _answer(1, "second")
    assert memory.answer(2, "third") is None


def test_behind_another_request_everything_is_forgotten() -> None:
    memory = TurnMemory({number: _answer(number) for number in range(4)})
    assert memory.answer(1, "something else") is None
    assert memory.answer(2, "r") is None
    assert memory.answer(0, "r") is not None


def test_an_answer_that_was_not_kept_is_not_known_and_neither_are_those_behind_it() -> None:
    memory = TurnMemory({0: ModelAnswer(number=0, request="r"), 1: _answer(1)})
    assert memory.answer(0, "r") is None
    assert memory.answer(1, "r") is None


async def test_a_second_answer_of_a_number_takes_the_place_of_all_behind_it() -> None:
    journal = await _journal(_answer(0), _answer(1), _answer(2), _answer(1, "anew"))
    memory = await memory_of(journal, TURN, "api")
    assert sorted(memory.answers) == [0, 1]
    assert memory.answer(1, "anew") is not None


@pytest.mark.parametrize(
    "other",
    [{"step_key": "work:1"}, {"asking": 1}, {"run_id": "run_2"}],
    ids=lambda item: str(item),
)
async def test_answers_of_other_turns_are_not_its_own(other: dict[str, Any]) -> None:
    journal = await _journal(_answer(0))
    assert (await memory_of(journal, TURN.model_copy(update=other), "api")).answers == {}


async def test_answers_of_other_agents_are_not_its_own() -> None:
    journal = await _journal(_answer(0), agent="another")
    assert (await memory_of(journal, TURN, "api")).answers == {}


async def test_a_retry_of_the_step_makes_all_of_it_forgotten() -> None:
    journal = await _journal(_answer(0))
    await journal.append(TURN.run_id, _retried("other:0"))
    assert (await memory_of(journal, TURN, "api")).answers.keys() == {0}
    await journal.append(TURN.run_id, _retried(TURN.step_key))
    assert (await memory_of(journal, TURN, "api")).answers == {}
    await journal.append(TURN.run_id, _answered(_answer(0, "anew")))
    assert (await memory_of(journal, TURN, "api")).answer(0, "anew") is not None


def _retried(step: str) -> EventBody:
    return RunRetried(by="ann", discarded_steps=(step,))


async def test_a_long_turn_is_remembered_to_its_end() -> None:
    journal = MemoryJournal()

    def append_all(tx: Any) -> None:
        for number in range(1100):
            tx.append(TURN.run_id, _answered(_answer(number)))

    await journal.store.write(append_all)
    assert len((await memory_of(journal, TURN, "api")).answers) == 1100


async def test_the_next_door_of_the_turn_says_what_was_recorded_at_the_first() -> None:
    harness = DoorHarness()
    async with harness.hook_door.open(TURN, agent="api") as door:
        assert door.recorded_answer(0, "r") is None
        await door.record_answer(_answer(0, text="Hello."))
        assert door.recorded_answer(0, "r") is not None
    async with harness.hook_door.open(TURN, agent="api") as door:
        assert door.recorded_answer(0, "r") == _answer(0, text="Hello.")
    async with harness.hook_door.open(TURN, agent="another") as door:
        assert door.recorded_answer(0, "r") is None


async def test_an_answer_that_cannot_be_written_is_an_error_and_not_remembered() -> None:
    class Full(MemoryJournal):
        async def append(self, run_id: str, body: EventBody) -> int:
            raise NotPossibleNow("the disk is full; make room")

    harness = DoorHarness()
    doors = HookServer(harness.tool_door, harness.toolbox, Full(harness.store))
    async with doors.open(TURN, agent="api") as door:
        with pytest.raises(NotPossibleNow):
            await door.record_answer(_answer(0))
        assert door.recorded_answer(0, "r") is None


async def test_request_refused_before_is_refused_again_without_a_second_record() -> None:
    harness = DoorHarness(Effect.ALLOW)
    for _ in range(2):
        async with harness.hook_door.open(TURN, agent="api") as door:
            answer = await door.perform("no_such_tool", {"at": 1})
            assert "no_such_tool" in answer.say
    refused = [event for event in await harness.events() if isinstance(event, ToolRefused)]
    assert len(refused) == 1


async def test_what_a_failed_attempt_recorded_as_used_is_marked_so_that_it_counts_once() -> None:
    journal = await _journal(_answer(0), _answer(1))
    spent = UsageRecorded(source="agent:api", usage=Usage(input_tokens=5), step=TURN.step_key)
    await journal.append(TURN.run_id, spent)
    await journal.append(TURN.run_id, _answered(_answer(2)))
    other = UsageRecorded(source="agent:api", usage=Usage(input_tokens=5), step="another")
    await journal.append(TURN.run_id, other)
    memory = await memory_of(journal, TURN, "api")
    assert [memory.answers[number].counted for number in range(3)] == [True, True, False]


async def test_an_attempt_that_ended_before_it_came_to_an_answer_has_not_counted_it() -> None:
    used = Usage(input_tokens=3, output_tokens=1)
    journal = await _journal(*(_answer(number, usage=used) for number in range(3)))
    for tokens in (0, 4, 7):
        spent = Usage(turns=1, input_tokens=tokens)
        body = UsageRecorded(source="agent:api", usage=spent, step=TURN.step_key)
        await journal.append(TURN.run_id, body)
    memory = await memory_of(journal, TURN, "api")
    assert [memory.answers[number].counted for number in range(3)] == [True, True, False]
