"""Spans out of events: one trace for each run, whoever hosts it, and no words of anybody in it."""

from __future__ import annotations

from datetime import timedelta

from podium.core.decisions import Usage
from podium.core.events import (
    AgentAsked,
    AgentReplied,
    AgentStopped,
    Event,
    ModelAnswered,
    RunFailed,
    RunNeededHuman,
    RunParked,
    RunSucceeded,
    StepBroke,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolRefused,
    ToolRequested,
)
from podium.core.turns import ModelAnswer, RequestedCall, TurnStop
from podium.core.work import Failure, Run
from podium.telemetry.event_feed import HostedRun
from podium.telemetry.run_spans import TRACED_TYPES, SpanMaker
from podium.telemetry.span_model import FinishedSpan, span_ref_of, trace_of
from tests.unit.journal.hosted_harness import HostedHarness

SECRET = "the words of a task, sk-secret"
SECOND = timedelta(seconds=1)


class Watcher:
    """Spans that one process makes of the events of the runs it hosts."""

    def __init__(self, harness: HostedHarness) -> None:
        self._harness = harness
        self._maker = SpanMaker()
        self.spans: list[FinishedSpan] = []

    def take(self, event: Event, run: HostedRun) -> None:
        self.spans += self._maker.take(event, run)

    async def named(self) -> dict[str, FinishedSpan]:
        """All spans by name, once the process has come to its end."""
        self.spans += self._maker.close()
        return {span.name: span for span in self.spans}


async def watched(
    harness: HostedHarness, run: Run, *bodies: object, fence: int = 1
) -> dict[str, FinishedSpan]:
    """The spans of a process that takes the run, sees these a second apart, and ends."""
    watcher = Watcher(harness)
    follower = await harness.follow(watcher.take, TRACED_TYPES)
    await harness.start(run, fence=fence)
    for body in bodies:
        await harness.say(run, body, after=SECOND)  # type: ignore[arg-type] # events of many types
    await follower.catch_up()
    return await watcher.named()


def requested(call: str) -> ToolRequested:
    return ToolRequested(
        call=call,
        tool="write_file",
        arguments={"content": SECRET},
        digest="sha256:x",
        tier="T1",
        rule="writes",
        reason=SECRET,
    )


def replied(**more: object) -> AgentReplied:
    return AgentReplied.model_validate(
        {
            "role": "developer",
            "agent": "codex",
            "text": SECRET,
            "usage": Usage(input_tokens=9, output_tokens=4, usd=0.5),
            "model": "gpt-x",
            "seconds": 1.0,
            **more,
        }
    )


ASKED = AgentAsked(role="developer", agent="codex", prompt=SECRET)
ASKED_IN_STEP = AgentAsked(role="developer", agent="codex", prompt=SECRET, step="work#2")


def answered(number: int, model: str, *tools: str) -> ModelAnswered:
    return ModelAnswered(
        step="work#2",
        role="developer",
        agent="codex",
        answer=ModelAnswer(
            number=number,
            request="sha256:x",
            text=SECRET,
            calls=tuple(RequestedCall(tool=tool, arguments=SECRET) for tool in tools),
            model=model,
            usage=Usage(input_tokens=7, output_tokens=3, usd=0.25),
            kept=SECRET,
        ),
    )


async def test_a_run_is_a_tree_of_hosting_steps_turns_and_calls() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    begun = harness.clock.now()
    spans = await watched(
        harness,
        run,
        StepStarted(step="work#2"),
        ASKED,
        requested(f"{run.id}:work#2:abc.0"),
        ToolCompleted(call=f"{run.id}:work#2:abc.0", tool="write_file", result=SECRET, receipt=1),
        replied(),
        StepCompleted(step="work#2", seconds=5.0),
        RunSucceeded(result=SECRET),
    )
    whole, host, step = spans["run pipeline"], spans["host pipeline"], spans["step work"]
    turn, call = spans["invoke_agent developer"], spans["execute_tool write_file"]
    assert len(spans) == 5
    assert whole.ref == span_ref_of(run.id)
    assert whole.parent is None
    assert [item.parent for item in (host, step)] == [whole.ref, whole.ref]
    assert [item.parent for item in (turn, call)] == [step.ref, step.ref]
    assert (whole.start, whole.end) == (begun, begun + 7 * SECOND)
    assert (step.start, step.end) == (begun + SECOND, begun + 6 * SECOND)
    assert (turn.start, turn.end) == (begun + 2 * SECOND, begun + 5 * SECOND)
    assert turn.attributes["gen_ai.usage.input_tokens"] == 9
    assert turn.attributes["gen_ai.response.model"] == "gpt-x"
    assert call.attributes["podium.decision"] == "allow"
    assert call.attributes["podium.outcome"] == "completed"
    assert whole.attributes["podium.outcome"] == "succeeded"
    assert SECRET not in repr(spans)


async def test_answers_of_a_model_and_its_calls_stand_within_the_turn() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    begun, key = harness.clock.now(), f"{run.id}:work#2:abc.0"
    spans = await watched(
        harness,
        run,
        StepStarted(step="work#2"),
        ASKED_IN_STEP,
        answered(0, "first-model", "write_file"),
        requested(key),
        ToolCompleted(call=key, tool="write_file", result=SECRET, receipt=1),
        answered(1, "second-model"),
        replied(),
        StepCompleted(step="work#2"),
        RunSucceeded(),
    )
    turn, call = spans["invoke_agent developer"], spans["execute_tool write_file"]
    first, second = spans["chat first-model"], spans["chat second-model"]
    assert turn.parent == spans["step work"].ref
    assert {item.parent for item in (first, second, call)} == {turn.ref}
    assert (first.start, first.end) == (begun + 2 * SECOND, begun + 3 * SECOND)
    # The model is asked again once its call has been settled.
    assert (second.start, second.end) == (begun + 5 * SECOND, begun + 6 * SECOND)
    assert first.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "first-model",
        "gen_ai.response.model": "first-model",
        "gen_ai.agent.name": "codex",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "podium.usd": 0.25,
        "podium.role": "developer",
        "podium.answer": 0,
        "podium.calls": 1,
    }
    assert turn.attributes["podium.answers"] == 2
    assert SECRET not in repr(spans)


async def test_a_turn_that_a_limit_ended_says_which() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    stopped = AgentStopped(
        role="developer", agent="codex", stop=TurnStop(kind="tool_calls", reason=SECRET)
    )
    spans = await watched(harness, run, ASKED, stopped, replied(), RunSucceeded())
    turn = spans["invoke_agent developer"]
    assert (turn.attributes["podium.stop"], turn.error) == ("tool_calls", "stopped_tool_calls")
    assert SECRET not in repr(spans)


async def test_a_turn_that_goes_on_in_another_process_has_its_answers_in_it() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    step = StepStarted(step="work#2")
    await watched(harness, run, step, ASKED_IN_STEP, answered(0, "first-model"))
    spans = await watched(harness, run, step, answered(1, "second-model"), replied(), fence=2)
    turn = spans["invoke_agent developer"]
    assert spans["chat second-model"].parent == turn.ref
    assert turn.start == spans["chat second-model"].end


async def test_answers_before_a_turn_was_given_up_stand_within_it() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    step = StepStarted(step="work#2")
    spans = await watched(harness, run, step, ASKED_IN_STEP, answered(0, "m"), RunParked(reason=""))
    assert spans["chat m"].parent == spans["invoke_agent developer"].ref
    assert spans["invoke_agent developer"].error == "no_answer"


async def test_the_trace_of_a_run_is_found_by_its_id() -> None:
    assert f"{trace_of('run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f'):032x}" == (
        "0199f3c2a7b87c3e9d1f5a6b7c8d9e0f"
    )
    odd = [trace_of(name) for name in ("nightly", "nightly2", "", "x_\ud800", "run_" + "0" * 32)]
    assert len(set(odd)) == len(odd)
    assert all(0 < item < 2**128 for item in odd)


async def test_processes_that_host_a_run_in_turn_add_to_one_trace() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    step = StepStarted(step="work")
    first = await watched(harness, run, step, RunParked(reason=SECRET))
    second = await watched(harness, run, step, StepCompleted(step="work"), RunSucceeded(), fence=2)
    assert "run pipeline" not in first
    assert first["step work"].attributes["podium.outcome"] == "unfinished"
    assert first["host pipeline"].parent == second["run pipeline"].ref
    assert first["host pipeline"].ref != second["host pipeline"].ref
    assert first["step work"].ref != second["step work"].ref
    assert len({span.ref.trace_id for span in (*first.values(), *second.values())}) == 1


async def test_a_child_run_is_a_trace_of_its_own_that_leads_to_its_parent() -> None:
    harness = HostedHarness()
    parent = await harness.queue()
    child = await harness.queue(flow="leaf", parent_id=parent.id)
    spans = await watched(harness, child, RunSucceeded())
    assert spans["run leaf"].links == (span_ref_of(parent.id),)
    assert spans["run leaf"].ref.trace_id != trace_of(parent.id)


async def test_what_failed_says_which_kind_of_error_and_none_of_its_words() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    failure = Failure(kind="AgentRefused", message=SECRET)
    spans = await watched(
        harness,
        run,
        StepStarted(step="work"),
        ASKED,
        StepBroke(step="work", attempt=1, failure=failure, final=True),
        RunFailed(failure=failure),
    )
    assert spans["step work"].error == "AgentRefused"
    assert spans["run pipeline"].error == "AgentRefused"
    assert spans["invoke_agent developer"].error == "no_answer"
    assert spans["invoke_agent developer"].parent == spans["step work"].ref
    assert SECRET not in repr(spans)


async def test_a_refused_call_shows_what_was_decided() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    refused = ToolRefused(
        call=f"{run.id}:work:abc.0",
        tool="run_command",
        arguments={"command": SECRET},
        effect="deny",
        tier="T3",
        rule="no-push",
        reason=SECRET,
    )
    spans = await watched(harness, run, StepStarted(step="work"), refused, RunParked(reason=""))
    call = spans["execute_tool run_command"]
    assert call.attributes["podium.decision"] == "deny"
    assert call.attributes["podium.rule"] == "no-push"
    assert call.parent == spans["step work"].ref
    assert SECRET not in repr(spans)


async def test_call_is_distinguished_from_similar_ones_by_the_step_in_its_key() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    key = f"{run.id}:left:abc.0"
    spans = await watched(
        harness,
        run,
        StepStarted(step="left"),
        StepStarted(step="right"),
        requested(key),
        ToolCompleted(call=key, tool="write_file", receipt=1),
        ASKED,
        replied(),
        StepCompleted(step="left"),
        StepCompleted(step="right"),
        RunSucceeded(),
    )
    assert spans["execute_tool write_file"].parent == spans["step left"].ref
    # Nothing says which of the two the agent was asked in.
    assert spans["invoke_agent developer"].parent == spans["run pipeline"].ref


async def test_a_call_that_is_settled_with_its_step_hangs_below_it() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    key = f"{run.id}:act:abc.0"
    spans = await watched(
        harness,
        run,
        StepStarted(step="act"),
        requested(key),
        StepCompleted(step="act"),
        ToolCompleted(call=key, tool="write_file", receipt=1),
        RunSucceeded(),
    )
    assert spans["execute_tool write_file"].parent == spans["step act"].ref


async def test_a_run_that_stops_for_a_person_keeps_the_hosting_that_led_there() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    spans = await watched(harness, run, StepStarted(step="work"), RunNeededHuman(reason=SECRET))
    assert spans["step work"].parent == span_ref_of(run.id)
    assert spans["host pipeline"].end - spans["host pipeline"].start == 2 * SECOND
    assert "run pipeline" not in spans


async def test_ends_without_beginnings_and_wild_figures_make_spans_all_the_same() -> None:
    harness = HostedHarness()
    run = await harness.queue(flow="\n".join("x" * 500))
    spans = await watched(
        harness,
        run,
        StepCompleted(step="lost", seconds=2.0),
        replied(seconds=1e300, role="a\x1b[31m"),
        replied(seconds=-1e300, role="b"),
        ToolCompleted(call="not a key", tool="t", seconds=-5.0, receipt=1),
        RunSucceeded(),
    )
    assert spans["step lost"].end - spans["step lost"].start == 2 * SECOND
    assert all(span.start <= span.end for span in spans.values())
    assert all(len(span.name) < 300 and span.name.isprintable() for span in spans.values())
