"""Spans out of events: a run is a trace, its steps, turns and calls are what it is made of.

Ids are derived, not drawn: processes on many machines that host a run in turn add to one trace, and
a run's trace is found by its id. Of what was said and done, a span has names and figures alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.domain.events import (
    AgentAsked,
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
    StepStarted,
)
from podium.journal.hosted import MOST_RUNS, HostedRun
from podium.journal.span_begun import Begun, Opened
from podium.journal.span_calls import call_spans, settled
from podium.journal.span_places import (
    Attribute,
    Span,
    host_place,
    lasting,
    place_of,
    step_place,
    word,
)
from podium.journal.span_turns import turn_spans, unanswered

TRACED_TYPES = (
    "agent_asked",
    "agent_replied",
    "agent_stopped",
    "model_answered",
    "run_needed_human",
    "step_broke",
    "step_completed",
    "step_started",
    "tool_abandoned",
    "tool_completed",
    "tool_failed",
    "tool_in_doubt",
    "tool_refused",
    "tool_requested",
)
"""Events that spans are made of, beside those that tell who owns a run."""


class SpanMaker:
    """Takes the events of hosted runs in order, and gives spans as they end."""

    def __init__(self) -> None:
        self._begun: dict[str, Begun] = {}

    def take(self, event: Event, run: HostedRun) -> list[Span]:
        """The spans that ended with this event."""
        if isinstance(event.body, RunStarted):
            return self._begin(event, run)
        begun = self._begun.setdefault(run.id, Begun(run, event.at, event.at))
        begun.latest = event.at
        match event.body:
            case RunSucceeded() | RunFailed() | RunCancelled() | RunParked():
                del self._begun[run.id]
                return list(_let_go(event, run, begun))
            case RunNeededHuman():
                return list(_left_open(event, run, begun))
            case StepStarted() | StepCompleted() | StepBroke():
                return list(_step(event, run, begun))
            case AgentAsked() | ModelAnswered() | AgentStopped() | AgentReplied():
                return list(turn_spans(event, run, begun))
            case _:
                return list(call_spans(event, run, begun))

    def close(self) -> list[Span]:
        """The hosting of runs that stopped without being let go of, such as for a person."""
        return [_hosting(self._begun.pop(run_id), "stopped") for run_id in list(self._begun)]

    def _begin(self, event: Event, run: HostedRun) -> list[Span]:
        earlier = self._begun.pop(run.id, None)
        self._begun[run.id] = Begun(run, event.at, event.at)
        while len(self._begun) > MOST_RUNS:  # runs that others took over
            del self._begun[next(iter(self._begun))]
        return [] if earlier is None else [_hosting(earlier, "stopped")]


def _let_go(event: Event, run: HostedRun, begun: Begun) -> Iterator[Span]:
    """All that was open, the hosting itself, and the whole run when this is its end."""
    yield from _left_open(event, run, begun)
    error = word(event.body.failure.kind) if isinstance(event.body, RunFailed) else ""
    outcome = event.body.type.removeprefix("run_")
    yield _hosting(begun, outcome, error)
    if outcome != "parked":
        links = (place_of(run.parent_id),) if run.parent_id else ()
        started = min(run.created_at, event.at)
        name, about = f"run {word(run.flow)}", _about_run(run, outcome)
        yield Span(place_of(run.id), None, name, started, event.at, about, error, links)


def _hosting(begun: Begun, outcome: str, error: str = "") -> Span:
    run = begun.run
    return Span(
        host_place(run),
        place_of(run.id),
        f"host {word(run.flow)}",
        begun.since,
        begun.latest,
        {**_about_run(run, outcome), "podium.run.fence": run.fence},
        error,
    )


def _about_run(run: HostedRun, outcome: str) -> dict[str, Attribute]:
    return {
        "podium.run.id": word(run.id),
        "podium.flow": word(run.flow),
        "podium.flow.version": run.flow_version,
        "podium.queue": word(run.queue or ""),
        "podium.outcome": outcome,
    }


def _left_open(event: Event, run: HostedRun, begun: Begun) -> Iterator[Span]:
    """Steps, turns and calls that will not end here."""
    for call in list(begun.calls):
        yield settled(event, run, begun, call, "unsettled", 0.0)
    yield from unanswered(event, begun)
    for step in list(begun.steps):
        yield _ended_step(event, run, begun, step, "unfinished")


def _step(event: Event, run: HostedRun, begun: Begun) -> Iterator[Span]:
    match event.body:
        case StepStarted(step=step, attempt=attempt):
            begun.steps[step] = Opened(event.at, attempt)
            begun.broken.discard(step)
        case StepCompleted(step=step) if step in begun.broken:
            # It recorded that it is tried again later, as another step.
            begun.broken.discard(step)
        case StepCompleted(step=step, seconds=seconds):
            begun.steps.setdefault(step, Opened(event.at - lasting(seconds), 1))
            yield _ended_step(event, run, begun, step, "completed")
        case StepBroke(step=step, failure=failure, final=final):
            if not final:
                begun.broken.add(step)
            if step in begun.steps and len(begun.steps) == 1:
                yield from unanswered(event, begun)
            yield _ended_step(event, run, begun, step, "failed", failure.kind)


def _ended_step(
    event: Event, run: HostedRun, begun: Begun, step: str, outcome: str, error: str = ""
) -> Span:
    opened = begun.steps.pop(step, Opened(event.at, 1))
    return Span(
        step_place(run, step, opened.attempt),
        # Not the hosting: that of a process that is killed is never sent.
        place_of(run.id),
        f"step {word(step.partition('#')[0])}",
        opened.at,
        event.at,
        {
            "podium.flow": word(run.flow),
            "podium.step": word(step),
            "podium.step.attempt": opened.attempt,
            "podium.outcome": outcome,
        },
        word(error),
    )
