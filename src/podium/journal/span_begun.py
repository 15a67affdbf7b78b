"""What of a run has begun and not ended, as far as spans go."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from podium.domain.events import ToolRequested
from podium.journal.hosted import HostedRun
from podium.journal.span_places import SpanPlace, place_of, step_place


class Opened(NamedTuple):
    """A step that has started."""

    at: datetime
    attempt: int


@dataclass
class OpenTurn:
    """A turn that an agent was asked to take and has not answered."""

    since: datetime
    place: SpanPlace
    parent: SpanPlace
    step: str
    """Empty where the record does not say in which step it is taken."""
    role: str
    agent: str
    heard: datetime
    """When the model last had something new to answer: it was asked, or a call of it came to its end."""
    answers: int = 0
    stop: str = ""
    """The limit that ended it."""


@dataclass
class Begun:
    """What of a run this process hosts and has not seen the end of."""

    run: HostedRun
    since: datetime
    latest: datetime
    steps: dict[str, Opened] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Steps whose span was ended by a failure that is not their end."""
    turns: list[OpenTurn] = field(default_factory=list)
    calls: dict[str, tuple[datetime, ToolRequested, SpanPlace]] = field(default_factory=dict)


def turn_in(step: str, begun: Begun) -> OpenTurn | None:
    """The open turn of a step; None where there is none, or nothing tells it from others."""
    found = [turn for turn in begun.turns if turn.step == step]
    return found[0] if len(found) == 1 else None


def current(run: HostedRun, begun: Begun) -> SpanPlace:
    """What is going on: the one open step, or the run when several are open or none is."""
    if len(begun.steps) == 1:
        [(step, opened)] = begun.steps.items()
        return step_place(run, step, opened.attempt)
    return place_of(run.id)
