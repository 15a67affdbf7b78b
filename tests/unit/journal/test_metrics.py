"""Counters out of the events of hosted runs: complete, each event once, of this process alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from podium.core.decisions import Approval, Tier, Usage
from podium.core.errors import StoreBusy
from podium.core.events import (
    AgentReplied,
    AgentStopped,
    Event,
    ModelAnswered,
    RunCancelled,
    RunFailed,
    RunNeededHuman,
    RunParked,
    RunSucceeded,
    StepBroke,
    StepCompleted,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
    UsageRecorded,
)
from podium.core.turns import ModelAnswer, TurnStop
from podium.core.work import Failure, Run, WorkerHeartbeat
from podium.jobs.playbook.events import PlaybookEnded
from podium.ports import StoreView
from podium.telemetry import event_feed
from podium.telemetry.event_feed import HostedFollower, HostedRun
from podium.telemetry.metrics import HostedMetrics, gauges
from podium.testing import MemoryStore, retry_until
from tests.unit.journal.hosted_harness import ME, HostedHarness
from tests.unit.journal.test_exposition import samples

T = TypeVar("T")

SECRET = "task words and sk-secret"


def requested(call: str) -> ToolRequested:
    return ToolRequested(
        call=call,
        tool="write_file",
        arguments={"content": SECRET},
        digest="sha256:x",
        tier="T1",
        rule="r",
        reason=SECRET,
    )


async def counted(
    harness: HostedHarness, metrics: HostedMetrics, follower: HostedFollower
) -> dict[str, float]:
    await follower.catch_up()
    return {
        name + "".join(f" {value}" for _, value in labels): amount
        for (name, labels), amount in samples(*metrics.families()).items()
        if "_bucket" not in name and amount
    }


async def test_answers_of_models_stops_and_playbooks_are_counted() -> None:
    harness, metrics = HostedHarness(), HostedMetrics()
    follower = await harness.follow(metrics.take, metrics.types)
    run = await harness.queue()
    await harness.start(run)
    answer = ModelAnswer(number=0, request="x", text=SECRET, model="m-1")
    stop = TurnStop(kind="tool_calls", reason=SECRET)
    await harness.say(
        run,
        ModelAnswered(step="turn#0", role="playbook", agent="gemini", answer=answer),
        ModelAnswered(step="turn#0", role="playbook", agent="gemini", answer=answer),
        AgentStopped(role="playbook", agent="gemini", stop=stop),
        PlaybookEnded(met=False, stop=stop),
    )
    found = await counted(harness, metrics, follower)
    assert found["podium_model_answers_total m-1 playbook"] == 2
    assert found["podium_turns_stopped_total tool_calls playbook"] == 1
    assert found["podium_playbooks_ended_total no"] == 1


async def test_everything_that_a_hosted_run_does_is_counted_once() -> None:
    harness, metrics = HostedHarness(), HostedMetrics()
    follower = await harness.follow(metrics.take, metrics.types)
    run = await harness.queue()
    harness.clock.advance(7)
    await harness.start(run)
    failure = Failure(kind="Boom", message=SECRET)
    refused = {"tool": "run_command", "tier": "T3", "rule": "r", "reason": SECRET}
    usage = Usage(input_tokens=100, output_tokens=20, usd=0.5)
    await harness.say(
        run,
        StepCompleted(step="plan", seconds=2.0),
        StepBroke(step="work#1", attempt=1, failure=failure, final=False),
        StepBroke(step="work#1", attempt=2, failure=failure, final=True),
        requested("a"),
        ToolCompleted(call="a", tool="write_file", result=SECRET, receipt=1),
        requested("b"),
        ToolFailed(call="b", tool="write_file", error=SECRET, receipt=2),
        ToolInDoubt(call="c", tool="write_file"),
        ToolAbandoned(call="d", tool="write_file"),
        ToolRefused.model_validate({**refused, "call": "e", "effect": "deny", "arguments": {}}),
        ToolRefused.model_validate({**refused, "call": "f", "effect": "ask", "arguments": {}}),
        AgentReplied(
            role="developer", agent="codex", text=SECRET, usage=usage, seconds=60, model="gpt-x"
        ),
        UsageRecorded(source="agent:codex", usage=usage),
        UsageRecorded(source="tool:search", usage=Usage(usd=0.25)),
        RunNeededHuman(reason=SECRET),
        RunFailed(failure=failure),
    )
    expected = {
        "podium_runs_started_total pipeline": 1,
        "podium_runs_ended_total pipeline failed": 1,
        "podium_runs_stopped_total pipeline needs_human": 1,
        "podium_queue_wait_seconds_sum default": 7,
        "podium_queue_wait_seconds_count default": 1,
        "podium_steps_total pipeline completed": 1,
        "podium_steps_total pipeline tried_again": 1,
        "podium_steps_total pipeline failed": 1,
        "podium_step_seconds_sum pipeline": 2,
        "podium_step_seconds_count pipeline": 1,
        "podium_calls_total allow T1": 2,
        "podium_calls_total deny T3": 1,
        "podium_calls_total ask T3": 1,
        "podium_calls_settled_total completed": 1,
        "podium_calls_settled_total failed": 1,
        "podium_calls_settled_total in_doubt": 1,
        "podium_calls_settled_total abandoned": 1,
        "podium_turns_total gpt-x developer": 1,
        "podium_turn_seconds_sum developer": 60,
        "podium_turn_seconds_count developer": 1,
        "podium_turn_tokens_total input gpt-x developer": 100,
        "podium_turn_tokens_total output gpt-x developer": 20,
        "podium_turn_usd_total gpt-x developer": 0.5,
        "podium_usage_tokens_total input agent:codex": 100,
        "podium_usage_tokens_total output agent:codex": 20,
        "podium_usage_usd_total agent:codex": 0.5,
        "podium_usage_usd_total tool:search": 0.25,
    }
    assert await counted(harness, metrics, follower) == expected
    assert await counted(harness, metrics, follower) == expected


async def test_what_other_processes_host_is_theirs_to_count() -> None:
    harness, metrics = HostedHarness(), HostedMetrics()
    follower = await harness.follow(metrics.take, metrics.types)
    mine, theirs = await harness.queue(), await harness.queue()
    await harness.start(mine)
    await harness.start(theirs, owner="wrk_other")
    step = StepCompleted(step="plan")
    await harness.say(mine, step)
    await harness.say(theirs, step, RunSucceeded())
    await harness.start(mine, owner="wrk_other", fence=2)
    await harness.say(mine, step, RunCancelled())
    found = await counted(harness, metrics, follower)
    assert found["podium_steps_total pipeline completed"] == 1
    assert not [name for name in found if name.startswith("podium_runs_ended")]


async def test_a_run_that_is_taken_again_did_not_wait_in_its_queue() -> None:
    harness, metrics = HostedHarness(), HostedMetrics()
    follower = await harness.follow(metrics.take, metrics.types)
    run = await harness.queue()
    await harness.start(run)
    await harness.say(run, RunParked(reason="let go"), after=timedelta(hours=1))
    await harness.start(run, fence=2)
    await harness.say(run, RunSucceeded())
    found = await counted(harness, metrics, follower)
    assert found["podium_runs_taken_again_total pipeline"] == 1
    assert found["podium_runs_stopped_total pipeline parked"] == 1
    assert found["podium_runs_ended_total pipeline succeeded"] == 1
    assert found["podium_queue_wait_seconds_count default"] == 1
    assert "podium_queue_wait_seconds_sum default" not in found


async def test_what_happened_before_is_not_counted() -> None:
    harness, metrics = HostedHarness(), HostedMetrics()
    run = await harness.queue()
    await harness.start(run)
    follower = await harness.follow(metrics.take, metrics.types)
    await harness.say(run, RunSucceeded())
    assert await counted(harness, metrics, follower) == {}


class FaltersOnce(MemoryStore):
    """A store that cannot be read for a moment."""

    faltered = 0

    async def read(self, work: Callable[[StoreView], T]) -> T:
        if self.faltered == 1:
            self.faltered = 2
            raise StoreBusy("the database is away")
        return await super().read(work)


async def test_a_follower_waits_out_trouble_and_skips_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = HostedHarness()
    harness.store = FaltersOnce(harness.clock)
    monkeypatch.setattr(event_feed, "PAUSE_SECONDS", 0.001)  # nothing is waited for in it
    seen: list[Event] = []

    def take(event: Event, run: HostedRun) -> None:
        seen.append(event)
        if len(seen) == 2:
            raise ValueError("a reading that broke")

    follower = await harness.follow(take, HostedMetrics().types)
    run = await harness.queue()
    following = asyncio.create_task(follower.follow())
    harness.store.faltered = 1
    await harness.start(run)
    await harness.say(run, *[StepCompleted(step=f"s#{n}") for n in range(5)], RunSucceeded())
    await retry_until(lambda: len(seen) == 7)
    assert [event.seq for event in seen] == [2, 3, 4, 5, 6, 7, 8]
    await retry_until(lambda: not follower.problem)
    assert harness.store.faltered == 2
    await harness.store.close()
    await following


async def test_gauges_report_the_state_of_queues_workers_and_approvals() -> None:
    harness = HostedHarness()
    run = await harness.queue()
    harness.clock.advance(40)
    await harness.store.write(lambda tx: tx.save_worker(heartbeat(harness, ME, seconds_ago=0)))
    await harness.store.write(
        lambda tx: tx.save_worker(heartbeat(harness, "wrk_gone", seconds_ago=30))
    )
    await harness.store.write(lambda tx: tx.save_approval(approval(harness, run)))
    read = await harness.store.read(lambda view: gauges(view, ME))
    found = samples(*read)
    queue = ("queue", "default")
    assert found["podium_runs", (queue, ("status", "queued"))] == 1
    assert found["podium_runs", (queue, ("status", "running"))] == 0
    assert found["podium_queue_oldest_seconds", (queue,)] == 40
    assert found["podium_workers", ()] == 1
    assert found["podium_worker_hosting", ()] == 2
    assert found["podium_worker_room", ()] == 4
    assert found["podium_worker_info", (("version", "9.9"),)] == 1
    assert found["podium_approvals_waiting", ()] == 1


def heartbeat(harness: HostedHarness, worker_id: str, *, seconds_ago: float) -> WorkerHeartbeat:
    at = harness.clock.now() - timedelta(seconds=seconds_ago)
    return WorkerHeartbeat(
        id=worker_id,
        host="h",
        pid=1,
        started_at=at,
        beat_at=at,
        hosting=2,
        room=4,
        podium="9.9",
    )


def approval(harness: HostedHarness, run: Run) -> Approval:
    return Approval(
        id=harness.ids.new("apr"),
        run_id=run.id,
        call_key=f"{run.id}:act:0",
        digest="sha256:x",
        tool="write_file",
        summary=SECRET,
        tier=Tier.T2,
        requested_at=harness.clock.now(),
        deadline=harness.clock.now() + timedelta(hours=1),
    )
