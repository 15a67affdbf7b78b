"""Counters of what one process did, and gauges of queues, workers and approvals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from podium.core.decisions import ApprovalStatus, Usage
from podium.core.events import (
    AgentReplied,
    AgentStopped,
    Event,
    ModelAnswered,
    RunCancelled,
    RunFailed,
    RunNeededHuman,
    RunParked,
    RunStarted,
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
from podium.core.job import all_jobs, load
from podium.core.work import QueueCounts, WorkerHeartbeat
from podium.ports import StoreView
from podium.telemetry.event_feed import HostedRun
from podium.telemetry.exposition import LONG_SECONDS, CounterFamily, Gauge, Histogram, MetricFamily

_KERNEL_TYPES = (
    "agent_replied",
    "agent_stopped",
    "model_answered",
    "run_needed_human",
    "step_broke",
    "step_completed",
    "tool_abandoned",
    "tool_completed",
    "tool_failed",
    "tool_in_doubt",
    "tool_refused",
    "tool_requested",
    "usage_recorded",
)
"""Events of the kernel that are counted, beside those that tell who owns a run."""


class JobMetrics(Protocol):
    """Counters of the events of one job."""

    @property
    def types(self) -> Sequence[str]:
        """Types of the events that it takes."""
        ...

    def families(self) -> Sequence[MetricFamily]: ...

    def take(self, event: Event, run: HostedRun) -> None:
        """Count one event of these types."""
        ...


class HostedMetrics:
    """Takes events and counts. No label holds an id, a task's words or anything else without end."""

    def __init__(self) -> None:
        self._jobs: list[JobMetrics] = [load(job.metrics)() for job in all_jobs() if job.metrics]
        self._of_jobs = {name: metrics for metrics in self._jobs for name in metrics.types}
        self.started = CounterFamily("podium_runs_started_total", "Runs started.", ["flow"])
        self.taken_again = CounterFamily(
            "podium_runs_taken_again_total",
            "Runs continued that were started earlier or by another host.",
            ["flow"],
        )
        self.ended = CounterFamily(
            "podium_runs_ended_total", "Runs that ended.", ["flow", "status"]
        )
        self.stopped = CounterFamily(
            "podium_runs_stopped_total",
            "Runs that stopped before their end: at a checkpoint, or for a person.",
            ["flow", "why"],
        )
        self.queue_wait = Histogram(
            "podium_queue_wait_seconds",
            "Time from when a run could start until a worker first took it.",
            ["queue"],
            bounds=LONG_SECONDS,
        )
        self.steps = CounterFamily("podium_steps_total", "Steps by outcome.", ["flow", "outcome"])
        self.step_seconds = Histogram(
            "podium_step_seconds",
            "Duration of completed steps.",
            ["flow"],
            bounds=(0.005, 0.025, *LONG_SECONDS),
        )
        self.calls = CounterFamily(
            "podium_calls_total", "Calls by decision of the gate.", ["decision", "tier"]
        )
        self.settled = CounterFamily(
            "podium_calls_settled_total", "Allowed calls by outcome.", ["outcome"]
        )
        self.turns = CounterFamily(
            "podium_turns_total", "Turns that agents answered.", ["role", "model"]
        )
        self.stopped_turns = CounterFamily(
            "podium_turns_stopped_total", "Turns that a limit ended.", ["role", "limit"]
        )
        self.answers = CounterFamily(
            "podium_model_answers_total", "Responses of models within turns.", ["role", "model"]
        )
        self.turn_seconds = Histogram(
            "podium_turn_seconds", "Time that agents took to answer.", ["role"], bounds=LONG_SECONDS
        )
        self.turn_tokens = CounterFamily(
            "podium_turn_tokens_total",
            "Tokens of answered turns.",
            ["role", "model", "direction"],
        )
        self.turn_usd = CounterFamily(
            "podium_turn_usd_total", "Cost of answered turns.", ["role", "model"]
        )
        self.used_tokens = CounterFamily(
            "podium_usage_tokens_total",
            "All tokens used, including by tools and by turns without an answer.",
            ["source", "direction"],
        )
        self.used_usd = CounterFamily(
            "podium_usage_usd_total",
            "All cost, including of tools and of turns without an answer.",
            ["source"],
        )

    def families(self) -> list[MetricFamily]:
        """Everything that is counted, in the order it is shown in."""
        own = [family for family in vars(self).values() if isinstance(family, MetricFamily)]
        return [*own, *(family for job in self._jobs for family in job.families())]

    @property
    def types(self) -> tuple[str, ...]:
        """Events that are counted, beside those that tell who owns a run."""
        return (*_KERNEL_TYPES, *self._of_jobs)

    def take(self, event: Event, run: HostedRun) -> None:
        """Count one event of a run that this process owns."""
        match event.body:
            case RunStarted(fence=fence):
                self._began(event, run, fence)
            case RunSucceeded():
                self.ended.add(run.flow, "succeeded")
            case RunFailed():
                self.ended.add(run.flow, "failed")
            case RunCancelled():
                self.ended.add(run.flow, "cancelled")
            case RunParked():
                self.stopped.add(run.flow, "parked")
            case RunNeededHuman():
                self.stopped.add(run.flow, "needs_human")
            case StepCompleted(seconds=seconds):
                self.steps.add(run.flow, "completed")
                self.step_seconds.observe(run.flow, seconds=seconds)
            case StepBroke(final=final):
                self.steps.add(run.flow, "failed" if final else "tried_again")
            case UsageRecorded(source=source, usage=usage):
                self.used_usd.add(source, amount=usage.usd)
                _add_tokens(self.used_tokens, usage, source)
            case AgentReplied():
                self._replied(event.body)
            case AgentStopped(role=role, stop=stop):
                self.stopped_turns.add(role, stop.kind)
            case ModelAnswered(role=role, answer=answer):
                self.answers.add(role, answer.model)
            case _ if metrics := self._of_jobs.get(event.body.type):
                metrics.take(event, run)
            case _:
                self._count_call(event)

    def _began(self, event: Event, run: HostedRun, fence: int) -> None:
        if fence > 1:
            self.taken_again.add(run.flow)
            return
        self.started.add(run.flow)
        if run.queue is not None:
            waited = (event.at - run.ready_at).total_seconds()
            self.queue_wait.observe(run.queue, seconds=waited)

    def _replied(self, reply: AgentReplied) -> None:
        self.turns.add(reply.role, reply.model)
        self.turn_seconds.observe(reply.role, seconds=reply.seconds)
        self.turn_usd.add(reply.role, reply.model, amount=reply.usage.usd)
        _add_tokens(self.turn_tokens, reply.usage, reply.role, reply.model)

    def _count_call(self, event: Event) -> None:
        match event.body:
            case ToolRequested(tier=tier):
                self.calls.add("allow", tier)
            case ToolRefused(tier=tier, effect=effect):
                self.calls.add(effect, tier)
            case ToolCompleted():
                self.settled.add("completed")
            case ToolFailed():
                self.settled.add("failed")
            case ToolInDoubt():
                self.settled.add("in_doubt")
            case ToolAbandoned():
                self.settled.add("abandoned")


def _add_tokens(counter: CounterFamily, usage: Usage, *labels: str) -> None:
    counter.add(*labels, "input", amount=usage.input_tokens)
    counter.add(*labels, "output", amount=usage.output_tokens)


LEASE = timedelta(seconds=15)
"""A worker that has not been heard of for longer is not counted as alive."""

MAX_APPROVALS = 1000
"""More than these are not counted one by one."""


def gauges(view: StoreView, worker_id: str) -> list[MetricFamily]:
    """The gauges of one moment; `worker_id` is the process that is asked."""
    now = view.now()
    workers = view.workers()
    return [
        *_queues(view.tallies(), now),
        *_workers(workers, now),
        *_own(next((heartbeat for heartbeat in workers if heartbeat.id == worker_id), None)),
        _approvals(view),
    ]


def _queues(tallies: Sequence[QueueCounts], now: datetime) -> list[MetricFamily]:
    runs = Gauge("podium_runs", "Unfinished runs of queues, by status.", ["queue", "status"])
    oldest = Gauge(
        "podium_queue_oldest_seconds",
        "Waiting time of the first run that could start.",
        ["queue"],
    )
    for tally in tallies:
        for status in ("queued", "delayed", "running", "waiting", "needs_human"):
            runs.put(tally.queue, status, amount=getattr(tally, status))
        waited = (now - (tally.oldest_queued_at or now)).total_seconds()
        oldest.put(tally.queue, amount=max(waited, 0.0))
    return [runs, oldest]


def _workers(heartbeats: Sequence[WorkerHeartbeat], now: datetime) -> list[MetricFamily]:
    alive = Gauge("podium_workers", "Live processes that host runs.")
    alive.put(amount=sum(heartbeat.beat_at + LEASE >= now for heartbeat in heartbeats))
    return [alive]


def _own(heartbeat: WorkerHeartbeat | None) -> list[MetricFamily]:
    """Metrics of this process's last heartbeat. Nothing before it has."""
    if heartbeat is None:
        return []
    hosting = Gauge("podium_worker_hosting", "Runs that this worker hosts.")
    capacity = Gauge("podium_worker_room", "Maximum number of runs that this worker hosts.")
    load = Gauge("podium_host_load", "Load of the host per core.")
    about = Gauge(
        "podium_worker_info", "Version of Podium that this worker runs. Always 1.", ["version"]
    )
    hosting.put(amount=heartbeat.hosting)
    capacity.put(amount=heartbeat.room)
    load.put(amount=heartbeat.load)
    about.put(heartbeat.podium, amount=1)
    return [hosting, capacity, load, about]


def _approvals(view: StoreView) -> MetricFamily:
    waiting = Gauge(
        "podium_approvals_waiting",
        f"Approvals that wait for a person; {MAX_APPROVALS} means that many or more.",
    )
    approvals = view.approvals(statuses=[ApprovalStatus.PENDING], limit=MAX_APPROVALS)
    waiting.put(amount=len(approvals))
    return waiting
