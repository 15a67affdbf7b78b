"""Cost of a run so far, event by event, with what open turns have used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from podium.core.decisions import Usage
from podium.core.events import (
    EventBody,
    ModelAnswered,
    RunCancelled,
    RunFailed,
    RunParked,
    RunSucceeded,
    StepBroke,
    StepCompleted,
    ToolRefused,
    ToolRequested,
    UsageRecorded,
)

METERED_TYPES = (
    "model_answered",
    "run_cancelled",
    "run_failed",
    "run_parked",
    "run_succeeded",
    "step_broke",
    "step_completed",
    "tool_refused",
    "tool_requested",
    "usage_recorded",
)
"""Events that change what the meter shows."""

AGENT = "agent:"
"""Beginning of a source of usage that is an agent; others are tools."""


@dataclass
class CostMeter:
    """Takes the events of one run in order. A turn's answers count until its own record stands for them."""

    recorded: Usage = field(default_factory=Usage)
    """Of turns that ended and of tools: what budgets count."""
    calls: int = 0
    """Refused ones included."""
    model_answers: int = 0
    by_source: dict[str, Usage] = field(default_factory=dict)
    """`agent:NAME` or a tool → what is recorded of it."""
    _open: dict[tuple[str, str], Usage] = field(default_factory=dict)
    """Step and agent → what answers used in a turn whose usage is not recorded yet."""

    @classmethod
    def of(cls, bodies: Iterable[EventBody]) -> CostMeter:
        """The meter after these."""
        meter = cls()
        for body in bodies:
            meter.take(body)
        return meter

    def take(self, body: EventBody) -> None:
        """Count one event. Those of other types change nothing."""
        match body:
            case UsageRecorded(source=source, usage=usage):
                self.recorded = self.recorded.plus(usage)
                self.by_source[source] = self.by_source.get(source, Usage()).plus(usage)
                self._close(agent=source.removeprefix(AGENT))
            case ModelAnswered(step=step, agent=agent, answer=answer):
                self.model_answers += 1
                key = step, agent
                self._open[key] = self._open.get(key, Usage()).plus(answer.usage)
            case StepCompleted(step=step) | StepBroke(step=step):
                self._close(step=step)
            case RunParked() | RunSucceeded() | RunFailed() | RunCancelled():
                # Not when a run is merely taken over: its open turns go on with the answers they had.
                self._open.clear()
            case ToolRequested() | ToolRefused():
                self.calls += 1

    def _close(self, *, step: str | None = None, agent: str | None = None) -> None:
        for key in [key for key in self._open if step == key[0] or agent == key[1]]:
            del self._open[key]

    @property
    def usage(self) -> Usage:
        """All of it, with what open turns have used so far."""
        total = self.recorded
        for used in self._open.values():
            total = total.plus(used)
        return total

    @property
    def agents(self) -> dict[str, Usage]:
        """Agent → what is recorded of its turns."""
        return {
            source.removeprefix(AGENT): usage
            for source, usage in self.by_source.items()
            if source.startswith(AGENT)
        }
