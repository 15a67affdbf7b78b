"""Which agents answered in which steps of a run, and what the run has used, as the journal has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from podium.domain.events import (
    AgentReplied,
    Event,
    RunStarted,
    StepBroke,
    StepCompleted,
    StepStarted,
)
from podium.domain.gating import Usage
from podium.domain.metering import METERED_TYPES, CostMeter
from podium.domain.model import Noun
from podium.domain.work import StepRecord
from podium.ports import EventQuery, View

TYPES = (*METERED_TYPES, "run_started", "step_started", "agent_replied")
PAGE = 1000


class Work(Noun):
    """Who did what, and what it cost."""

    agents: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Step key → those who answered in it, the first first."""
    usage: Usage = Usage()
    """Of agents and tools together, also of what was discarded, brought no answer or goes on."""
    calls: int = 0
    """Refused ones included."""
    model_answers: int = 0
    """Of agents whose models Podium asks itself."""
    used_by: dict[str, Usage] = Field(default_factory=dict)
    """Agent → what its turns used that have ended."""


def who_worked(view: View, run_id: str, steps: Sequence[StepRecord]) -> Work:
    """Read the run's whole stream once."""
    open_steps: dict[str, None] = {}
    agents: dict[str, dict[str, None]] = {}
    meter = CostMeter()
    for event in _events(view, run_id):
        meter.take(event.body)
        match event.body:
            case RunStarted():
                open_steps.clear()
            case StepStarted(step=step):
                open_steps[step] = None
            case StepCompleted(step=step) | StepBroke(step=step):
                open_steps.pop(step, None)
            case AgentReplied() as reply:
                if (place := _step_of(reply, tuple(open_steps), steps)) is not None:
                    agents.setdefault(place, {})[reply.agent] = None
    return Work(
        agents={step: tuple(names) for step, names in agents.items()},
        usage=meter.usage,
        calls=meter.calls,
        model_answers=meter.model_answers,
        used_by=meter.agents,
    )


def _step_of(
    reply: AgentReplied, open_steps: Sequence[str], steps: Sequence[StepRecord]
) -> str | None:
    """The step an answer belongs to. None: several were going on, and nothing tells them apart."""
    if len(open_steps) == 1:
        return open_steps[0]
    found = (step.key for step in steps if reply.transcript and _keeps(step, reply.transcript))
    return next(found, None)


def _keeps(step: StepRecord, transcript: str) -> bool:
    return isinstance(step.output, dict) and step.output.get("transcript") == transcript


def _events(view: View, run_id: str) -> Iterator[Event]:
    after = 0
    while page := view.events(EventQuery(run_id=run_id, types=TYPES, after_seq=after, limit=PAGE)):
        yield from page
        after = page[-1].seq
