"""Contract of every function-calling agent: its calls, their results, and its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.events import (
    ApprovalRequested,
    ToolCompleted,
    ToolFailed,
    ToolRefused,
    ToolRequested,
)
from podium.core.model import Json
from podium.core.turns import Reply
from tests.unit.contract.function_calling_harness import (
    CALLERS,
    INPUT,
    LARGE,
    OUTPUT,
    RESULT_BYTES,
    Caller,
    CallingHarness,
    ModelTurn,
    model_turn,
    note,
    say,
)

every_caller = pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.name)


@pytest.fixture
def harness(tmp_path: Path) -> CallingHarness:
    return CallingHarness(tmp_path)


async def _asked(
    caller: Caller, harness: CallingHarness, *heartbeats: ModelTurn, **limits: Json
) -> tuple[Reply, str]:
    """The reply, and all that the model has heard."""
    async with caller.cast(harness, heartbeats) as cast:
        reply = await cast.agent.ask(harness.turn(**limits))
        return reply, cast.last_prompt()


@pytest.mark.sample(2)
@every_caller
async def test_a_call_is_performed_and_its_result_reaches_the_model(
    caller: Caller, harness: CallingHarness
) -> None:
    reply, output = await _asked(caller, harness, model_turn(note("milk")), say("All noted."))
    assert harness.done == ["milk"]
    assert "as number 1" in output
    assert "All noted." in reply.text
    assert reply.stopped is None
    requested, completed = [
        event
        for event in await harness.events()
        if isinstance(event, ToolRequested | ToolCompleted)
    ]
    assert isinstance(requested, ToolRequested)
    assert isinstance(completed, ToolCompleted)
    assert completed.call == requested.call


@every_caller
async def test_several_calls_of_one_answer_are_performed_in_their_order(
    caller: Caller, harness: CallingHarness
) -> None:
    many = model_turn(note("one"), note("two"), note("three"))
    _, output = await _asked(caller, harness, many, say("Done."))
    assert harness.done == ["one", "two", "three"]
    assert all(f"as number {number}" in output for number in (1, 2, 3))


@every_caller
async def test_refused_call_is_reported_in_words_and_the_others_are_performed(
    caller: Caller, harness: CallingHarness
) -> None:
    heartbeats = [model_turn(note("one"), ("wipe", {"text": "all"}), note("two")), say("Then not.")]
    reply, output = await _asked(caller, harness, *heartbeats)
    assert harness.done == ["one", "two"]
    assert "disks are off limits" in output
    assert "Then not." in reply.text


@every_caller
async def test_an_unknown_tool_is_answered_with_the_tools_there_are(
    caller: Caller, harness: CallingHarness
) -> None:
    reply, output = await _asked(caller, harness, model_turn(("format_disk", {})), say("I see."))
    assert "format_disk" in output
    assert output.count("keep_note") > 0
    assert "I see." in reply.text
    refused = [event for event in await harness.events() if isinstance(event, ToolRefused)]
    assert [event.tool for event in refused] == ["format_disk"]
    assert "keep_note" in refused[0].reason


@pytest.mark.sample(6)
@every_caller
@pytest.mark.parametrize("arguments", [{"text": 5}, {"texts": "milk"}, {"text": ["milk"]}])
async def test_bad_arguments_are_answered_by_what_is_wrong_with_them(
    caller: Caller, harness: CallingHarness, arguments: dict[str, Json]
) -> None:
    heartbeats = [model_turn(("keep_note", arguments)), model_turn(note("milk")), say("Done.")]
    _, output = await _asked(caller, harness, *heartbeats)
    assert harness.done == ["milk"]
    refused = [event for event in await harness.events() if isinstance(event, ToolRefused)]
    assert [event.tool for event in refused] == ["keep_note"]
    assert next(iter(arguments)) in refused[0].reason
    assert refused[0].reason[:40].replace('"', "'") in output.replace('\\"', "'")


@every_caller
async def test_tool_that_breaks_is_reported_as_an_error(
    caller: Caller, harness: CallingHarness
) -> None:
    reply, output = await _asked(caller, harness, model_turn(("break_down", {})), say("Oh."))
    assert "the paper is used up" in output
    assert "Oh." in reply.text
    assert any(isinstance(event, ToolFailed) for event in await harness.events())


@every_caller
async def test_tool_that_takes_too_long_is_reported_as_an_error(
    caller: Caller, harness: CallingHarness
) -> None:
    reply, output = await _asked(caller, harness, model_turn(("take_long", {})), say("Oh."))
    assert "timed out after 0.05 seconds" in output
    assert "Oh." in reply.text


@every_caller
async def test_a_result_that_is_too_large_is_cut_and_says_so(
    caller: Caller, harness: CallingHarness
) -> None:
    _, output = await _asked(caller, harness, model_turn(("tell_all", {})), say("Done."))
    assert f"cut: {LARGE} bytes in all" in output
    assert "y" * 100 in output
    assert "y" * RESULT_BYTES not in output


@every_caller
async def test_finish_ends_the_turn_with_its_summary(
    caller: Caller, harness: CallingHarness
) -> None:
    done = ("finish", {"summary": "Both notes are kept."})
    more = model_turn(note("three")) if caller.ends_at_finish else say("")
    heartbeats = [model_turn(note("one")), model_turn(note("two"), done), more]
    reply, _ = await _asked(caller, harness, *heartbeats)
    assert harness.done == ["one", "two"]
    assert reply.text == "Both notes are kept."
    assert reply.stopped is None


@every_caller
async def test_plain_words_end_the_turn(caller: Caller, harness: CallingHarness) -> None:
    reply, _ = await _asked(caller, harness, say("Nothing to do."))
    assert reply.text.strip() == "Nothing to do."
    assert (harness.done, reply.waiting_approvals, reply.stopped) == ([], (), None)


@every_caller
async def test_after_an_approval_the_same_conversation_goes_on_with_that_call(
    caller: Caller, harness: CallingHarness
) -> None:
    heartbeats = [
        model_turn(note("one"), ("send_mail", {"text": "mail"}), note("two")),
        say("Sent."),
    ]
    async with caller.cast(harness, heartbeats) as cast:
        first = await cast.agent.ask(harness.turn())
        assert harness.done == ["one"]
        (approval,) = first.waiting_approvals
        await harness.approve(approval)
        second = await cast.agent.ask(harness.turn(number=1, session=first.session))
        output = cast.last_prompt()
    assert harness.done == ["one", "mail", "two"]
    assert "as number 2" in output
    assert "Sent." in second.text
    assert second.waiting_approvals == ()
    asked = [event for event in await harness.events() if isinstance(event, ApprovalRequested)]
    assert len(asked) == 1


@pytest.mark.sample(1)
@every_caller
async def test_the_limit_of_calls_stops_the_turn(caller: Caller, harness: CallingHarness) -> None:
    heartbeats = [
        ModelTurn(calls=(note(str(number)),), words=f"Number {number}.") for number in range(6)
    ]
    reply, _ = await _asked(caller, harness, *heartbeats, say("Done."), tool_calls=3)
    assert harness.done == ["0", "1", "2"]
    assert reply.stopped is not None
    assert reply.stopped.kind == "tool_calls"
    assert "Number 0." in reply.text
    assert reply.session is not None


@every_caller
async def test_the_same_call_with_the_same_result_stops_the_turn(
    caller: Caller, harness: CallingHarness
) -> None:
    heartbeats = [model_turn(("look", {}))] * 9
    reply, _ = await _asked(caller, harness, *heartbeats, say("Done."), same_results=3)
    assert reply.stopped is not None
    assert reply.stopped.kind == "same_results"
    assert "'look' was called 3 times" in reply.stopped.reason
    performed = [event for event in await harness.events() if isinstance(event, ToolCompleted)]
    assert len(performed) == 3


@pytest.mark.sample(1)
@every_caller
async def test_what_every_answer_used_is_counted(caller: Caller, harness: CallingHarness) -> None:
    reply, _ = await _asked(
        caller, harness, model_turn(note("milk")), model_turn(note("tea")), say("Done.")
    )
    assert reply.usage.input_tokens == 3 * INPUT
    assert reply.usage.output_tokens == 3 * OUTPUT
    assert reply.usage.turns == 1
