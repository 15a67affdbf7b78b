"""The calls of an answer at the real door: what comes back are words that a model can use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart, ToolReturnPart

from podium.agents.api.settings import ApiSettings
from podium.agents.api.tool_calls import Calling, Offer, Performed
from podium.core.errors import AgentRejected
from podium.sandbox import HookServer
from podium.testing import MemoryJournal
from tests.unit.contract.function_calling_harness import NAME, CallingHarness
from tests.unit.tools.toolbox_harness import make_harness


@pytest.fixture
def harness(tmp_path: Path) -> CallingHarness:
    return CallingHarness(tmp_path)


async def _performed(
    harness: CallingHarness, *calls: tuple[str, Any], counts: bool = True, **settings: Any
) -> Performed:
    doors = HookServer(harness.tools.door, harness.tools.toolbox, MemoryJournal(harness.store))
    async with doors.open(harness.turn(), agent=NAME) as door:
        offer = Offer(door.specs())
        calling = Calling(NAME, door, offer, ApiSettings(**settings), counts=counts)
        return await calling.perform(
            [ToolCallPart(tool, given, f"id-{at}") for at, (tool, given) in enumerate(calls)]
        )


def _reported(result: ToolReturnPart) -> tuple[str, str]:
    return result.outcome, str(result.content)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('{"text": "mi', "delimiter|Unterminated"),
        ("no JSON at all", "Expecting value"),
        ('["milk"]', "it is a list"),
        ('"milk"', "it is a str"),
        ('{"text": NaN}', "NaN is not valid JSON"),
        ("[" * 100_000, "too deep"),
    ],
    ids=["cut off", "words", "list", "text", "NaN", "deep"],
)
async def test_arguments_that_are_no_object_are_answered_and_nothing_is_done(
    harness: CallingHarness, given: str, why: str
) -> None:
    performed = await _performed(harness, ("keep_note", given), ("keep_note", {"text": "tea"}))
    first, second = performed.results
    assert _reported(first)[0] == "failed"
    assert _reported(first)[1].startswith("Error: the arguments are not a JSON object (")
    assert _matches(why, _reported(first)[1])
    assert _reported(second)[0] == "success"
    assert harness.done == ["tea"]


def _matches(pattern: str, words: str) -> bool:
    return any(part in words for part in pattern.split("|"))


async def test_every_call_of_an_answer_gets_its_own_result(harness: CallingHarness) -> None:
    performed = await _performed(
        harness,
        ("keep_note", '{"text": "one"}'),
        ("wipe", {}),
        ("format_disk", {}),
        ("keep_note", {"text": 5}),
        ("break_down", {}),
        ("take_long", {}),
        ("tell_all", {}),
        ("keep_note", {"text": "two"}),
    )
    assert [result.tool_call_id for result in performed.results] == [f"id-{at}" for at in range(8)]
    assert [result.outcome for result in performed.results] == [
        "success",
        "denied",
        "failed",
        "failed",
        "failed",
        "failed",
        "success",
        "success",
    ]
    words = [str(result.content) for result in performed.results]
    assert words[1].startswith("Permission Denied: ")
    assert "disks are off limits" in words[1]
    assert words[2].startswith("Error: there is no tool 'format_disk'; tools: ")
    assert "keep_note" in words[2], "it is told which tools there are"
    assert words[3] == (
        "Error: invalid arguments for 'keep_note': 'text': 5 is not of type 'string'. "
        "keep_note takes {text?: text}, for example {}"
    )
    assert words[4] == "Error: 'break_down' broke: RuntimeError: the paper is used up"
    assert words[5] == "Error: timed out after 0.05 seconds"
    assert "bytes in all" in words[6]
    assert harness.done == ["one", "two"]


async def test_a_circle_is_noticed_here_only_when_the_door_does_not_look_for_one(
    harness: CallingHarness,
) -> None:
    calls: list[tuple[str, Any]] = [("look", {})] * 4
    with pytest.raises(AgentRejected, match="4 times"):
        await _performed(harness, *calls, same_call_limit=3)
    performed = await _performed(harness, *calls, counts=False, same_call_limit=3)
    assert len(performed.results) == 4


async def test_lines_that_were_read_in_this_turn_are_not_sent_a_second_time(
    tmp_path: Path,
) -> None:
    harness = CallingHarness(tmp_path)
    harness.tools = make_harness(tmp_path)
    (harness.tools.root / "long").write_text("a line\n" * 100)
    first, again, other = (
        await _performed(
            harness,
            ("read_file", {"path": "long"}),
            ("read_file", {"path": "long"}),
            ("read_file", {"path": "long", "limit": 90}),
        )
    ).results
    assert str(first.content).count("a line") == 100
    assert _reported(again) == (
        "success",
        "long, lines 1–100 of 100\nUnchanged since you read these lines in this turn: see above.",
    )
    assert str(other.content).count("a line") == 90
