"""What of a run has begun and not ended, as far as spans go."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from podium.domain.events import AgentAsked, ToolRequested
from podium.journal.hosted import HostedRun
from podium.journal.span_places import SpanPlace, place_of, step_place


class Opened(NamedTuple):
    """A step that has started."""

    at: datetime
    attempt: int


@dataclass
class Begun:
    """What of a run this process hosts and has not seen the end of."""

    run: HostedRun
    since: datetime
    latest: datetime
    steps: dict[str, Opened] = field(default_factory=dict)
    turns: list[tuple[datetime, AgentAsked, SpanPlace]] = field(default_factory=list)
    calls: dict[str, tuple[datetime, ToolRequested, SpanPlace]] = field(default_factory=dict)


def current(run: HostedRun, begun: Begun) -> SpanPlace:
    """What is going on: the one open step, or the run when several are open or none is."""
    if len(begun.steps) == 1:
        [(step, opened)] = begun.steps.items()
        return step_place(run, step, opened.attempt)
    return place_of(run.id)
