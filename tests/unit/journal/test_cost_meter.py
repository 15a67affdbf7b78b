"""The cost meter: what is recorded, what open turns have used so far, and nothing twice."""

from __future__ import annotations

import pytest

from podium.core import events as e
from podium.core.decisions import Usage
from podium.core.run_cost import METERED_TYPES, CostMeter
from podium.core.turns import ModelAnswer


def used(tokens: int, usd: float = 0.0, *, complete: bool = True) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=1, usd=usd, complete=complete)


def answered(step: str, tokens: int, *, agent: str = "gemini") -> e.ModelAnswered:
    answer = ModelAnswer(number=0, request="x", usage=used(tokens))
    return e.ModelAnswered(step=step, role="playbook", agent=agent, answer=answer)


def recorded(source: str, usage: Usage) -> e.UsageRecorded:
    return e.UsageRecorded(source=source, usage=usage)


CALL = e.ToolRequested(
    call="c", tool="t", arguments={}, digest="", tier="T0", rule="r", reason=""
)  # fmt: skip
REFUSED = e.ToolRefused(
    call="c", tool="t", arguments={}, effect="deny", tier="T0", rule="r", reason=""
)


def test_open_turn_counts_by_its_answers_until_its_own_record_replaces_them() -> None:
    meter = CostMeter.of([answered("turn#0", 10), CALL, answered("turn#0", 20)])
    assert meter.usage.input_tokens == 30
    assert meter.recorded == Usage()
    meter.take(recorded("agent:gemini", used(31, usd=0.5)))
    assert (meter.usage.input_tokens, meter.usage.usd) == (31, 0.5)
    meter.take(e.StepCompleted(step="turn#0"))
    assert meter.usage == meter.recorded == used(31, usd=0.5)
    assert (meter.calls, meter.model_answers) == (1, 2)


def test_what_one_turn_records_leaves_the_answers_of_another_agent_open() -> None:
    meter = CostMeter.of([answered("left", 10), answered("right", 20, agent="codex")])
    meter.take(recorded("agent:gemini", used(11)))
    assert meter.usage.input_tokens == 31
    meter.take(e.StepCompleted(step="right"))
    assert meter.usage.input_tokens == 11


@pytest.mark.parametrize(
    "end", [e.RunParked(reason=""), e.RunCancelled(), e.StepCompleted(step="turn#0")]
)
def test_a_turn_that_was_recorded_under_another_name_is_not_counted_twice(end: e.EventBody) -> None:
    meter = CostMeter.of([answered("turn#0", 10), recorded("agent:team", used(10)), end])
    assert meter.usage.input_tokens == 10


def test_a_run_that_another_process_takes_over_keeps_the_answers_of_its_open_turn() -> None:
    meter = CostMeter.of([answered("turn#0", 10), e.RunStarted(owner="wrk_b", fence=2)])
    assert meter.usage.input_tokens == 10


def test_agents_are_distinguished_from_tools_and_refused_calls_are_calls() -> None:
    meter = CostMeter.of(
        [
            recorded("agent:gemini", used(5)),
            recorded("tool:summarise", used(7, complete=False)),
            recorded("agent:gemini", used(6)),
            CALL,
            REFUSED,
        ]
    )
    assert meter.agents == {"gemini": used(5).plus(used(6))}
    assert (meter.calls, meter.usage.complete) == (2, False)
    assert meter.usage.input_tokens == 18


def test_events_of_other_types_change_nothing() -> None:
    messages = [e.NoteTaken(text="x"), e.AgentAsked(role="r", agent="a", prompt="p")]
    assert not {body.type for body in messages} & set(METERED_TYPES)
    assert CostMeter.of(messages) == CostMeter()
