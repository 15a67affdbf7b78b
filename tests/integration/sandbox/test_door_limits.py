"""The limits of a turn's calls: how many, and how often one may come to nothing new."""

from __future__ import annotations

import pytest

from podium.core.decisions import Call, CallOutcome, Decision, Effect, Refusal, Tier
from podium.core.errors import CallRefused
from podium.core.events import ToolCompleted, ToolRefused
from podium.core.model import Json
from podium.core.turns import TurnLimits
from podium.sandbox.hook_state import CallLimits
from tests.integration.sandbox.door_harness import TURN, DoorHarness, RealDoorHarness, say

HarnessOf = type[DoorHarness]


@pytest.fixture(params=[DoorHarness, RealDoorHarness])
def harness_of(request: pytest.FixtureRequest) -> HarnessOf:
    made: HarnessOf = request.param
    return made


def _call(tool: str = "look", **arguments: Json) -> Call:
    return Call(run_id="run_1", step_key="work:0", index=0, tool=tool, arguments=arguments)


def _saw(result: Json) -> CallOutcome:
    return CallOutcome(ok=True, result=result)


def _denied(reason: str) -> Refusal:
    decision = Decision(effect=Effect.DENY, rule="house", reason=reason, tier=Tier.T1)
    return Refusal(call=_call(), decision=decision, say=reason)


def test_without_limits_nothing_is_stopped() -> None:
    limits = CallLimits(TurnLimits())
    for _ in range(1000):
        limits.begin("look")
        limits.ended(_call(), _saw("same"), changes=False)
    assert limits.stopped is None


def test_the_call_beyond_the_limit_is_refused_and_so_is_every_later_one() -> None:
    limits = CallLimits(TurnLimits(tool_calls=2))
    stops = []
    for _ in range(2):
        limits.begin("look")
        stops.append(limits.stopped)
    for _ in range(2):
        with pytest.raises(CallRefused, match="all 2 of its calls"):
            limits.begin("look")
        stops.append(limits.stopped)
    assert [stop and (stop.kind, stop.exit_code) for stop in stops] == [
        None,
        None,
        ("tool_calls", 5),
        ("tool_calls", 5),
    ]


def test_a_limit_of_none_at_all_stops_the_first_call() -> None:
    limits = CallLimits(TurnLimits(tool_calls=0))
    limits.begin("finish")
    with pytest.raises(CallRefused):
        limits.begin("look")


def test_an_agent_that_goes_in_a_circle_may_not_finish() -> None:
    limits = CallLimits(TurnLimits(same_results=1))
    limits.begin("look")
    limits.ended(_call(), _saw("x"), changes=False)
    with pytest.raises(CallRefused, match="1 times with the same result"):
        limits.begin("finish")


@pytest.mark.parametrize(
    "answer", [_saw("same"), _denied("never"), CallOutcome(ok=False, error="no")]
)
def test_the_same_call_with_the_same_answer_stops_at_the_limit(
    answer: CallOutcome | Refusal,
) -> None:
    limits = CallLimits(TurnLimits(same_results=3))
    stops = []
    for number in range(3):
        limits.ended(_call(), answer, changes=True)
        stops.append(limits.stopped)
        # What lies between makes no difference, as long as it changes nothing.
        limits.ended(_call(at=number), _denied("also never"), changes=False)
    assert stops[:2] == [None, None]
    assert stops[2] is not None
    assert stops[2].kind == "same_results"
    assert "'look' was called 3 times" in stops[2].reason


def test_another_result_or_other_arguments_are_something_new() -> None:
    limits = CallLimits(TurnLimits(same_results=2))
    for number in range(9):
        limits.ended(_call(), _saw(number), changes=False)
        limits.ended(_call(at=number), _saw("same"), changes=False)
    assert limits.stopped is None


def test_what_was_seen_before_a_change_does_not_count() -> None:
    limits = CallLimits(TurnLimits(same_results=2))
    for number in range(5):
        limits.ended(_call(), _saw("all green"), changes=False)
        limits.ended(_call("write_file", content=number), _saw("written"), changes=True)
    assert limits.stopped is None


def test_a_change_that_is_repeated_is_a_circle_too() -> None:
    limits = CallLimits(TurnLimits(same_results=3))
    for _ in range(3):
        limits.ended(_call("write_file", content="x"), _saw("written"), changes=True)
    assert limits.stopped is not None


async def test_the_door_refuses_what_is_beyond_the_limit_and_records_it(
    harness_of: HarnessOf,
) -> None:
    harness = harness_of(Effect.ALLOW, Effect.ALLOW, Effect.ALLOW)
    turn = TURN.model_copy(update={"limits": TurnLimits(tool_calls=2)})
    async with harness.hook_door.open(turn) as door:
        answers = [await door.perform("echo", {"at": number}) for number in range(2)]
        # A program at the socket draws on the same account.
        late = await say(door, op="perform", tool="echo", arguments={"at": 2})
        assert door.stopped is not None
    assert [answer.allowed for answer in answers] == [True, True]
    assert late["decision"] == "deny"
    assert "end your turn" in late["say"]
    events = await harness.events()
    assert sum(isinstance(event, ToolCompleted) for event in events) == 2
    assert sum(isinstance(event, ToolRefused) for event in events) == 1


async def test_refused_request_counts_as_a_call(harness_of: HarnessOf) -> None:
    harness = harness_of(Effect.ALLOW)
    turn = TURN.model_copy(update={"limits": TurnLimits(tool_calls=1)})
    async with harness.hook_door.open(turn) as door:
        assert not (await door.perform("no_such_tool", {})).allowed
        assert not (await door.perform("echo", {})).allowed
        assert door.stopped is not None
    assert not any(isinstance(event, ToolCompleted) for event in await harness.events())


async def test_the_door_notices_the_same_result_again_and_again(harness_of: HarnessOf) -> None:
    harness = harness_of(*[Effect.ALLOW] * 3)
    turn = TURN.model_copy(update={"limits": TurnLimits(same_results=2)})
    async with harness.hook_door.open(turn) as door:
        stops = []
        for _ in range(2):
            assert (await door.perform("echo", {"at": 1})).allowed
            stops.append(door.stopped)
        assert [stop and stop.kind for stop in stops] == [None, "same_results"]
        assert not (await door.perform("echo", {"at": 2})).allowed
