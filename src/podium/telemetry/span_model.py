"""A span, its derived ids, and the spans of a run that are still open."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from podium.core.events import ToolRequested
from podium.telemetry.event_feed import HostedRun

MAX_LASTING_SECONDS = 7 * 86400.0
MAX_NAME = 200
"""Names come from models and files too."""

Attribute = str | int | float | bool


@dataclass(frozen=True)
class SpanRef:
    """Reference to a span: its trace and its own id in it."""

    trace_id: int
    span_id: int


@dataclass(frozen=True)
class FinishedSpan:
    """A finished piece of work."""

    ref: SpanRef
    parent: SpanRef | None
    name: str
    start: datetime
    end: datetime
    attributes: dict[str, Attribute] = field(default_factory=dict)
    error: str = ""
    """The kind of the error it ended with, never its words. Empty: none."""
    links: tuple[SpanRef, ...] = ()


def trace_of(run_id: str) -> int:
    """The trace of a run. For ids of Podium's own making, the hexadecimal part of the run's id."""
    tail = run_id.rpartition("_")[2]
    if len(tail) == 32 and all(character in "0123456789abcdef" for character in tail):
        return int(tail, 16) or 1
    return int.from_bytes(_digest(run_id)[:16]) or 1


def span_ref_of(run_id: str, *parts: str | int) -> SpanRef:
    """The place of a run's span; without `parts`, of the run itself."""
    digest = _digest("\0".join(map(str, (run_id, *parts))))
    return SpanRef(trace_of(run_id), int.from_bytes(digest[:8]) or 1)


def host_span(run: HostedRun) -> SpanRef:
    """The time that one process hosts a run."""
    return span_ref_of(run.id, "host", run.fence)


def step_span(run: HostedRun, step: str, attempt: int) -> SpanRef:
    """One attempt at a step. After a crash it is attempted again, under another fence."""
    return span_ref_of(run.id, "step", step, run.fence, attempt)


def lasting(seconds: float) -> timedelta:
    """A duration that an event tells of, within what can have been."""
    return timedelta(seconds=min(max(0.0, seconds), MAX_LASTING_SECONDS))


def printable_name(text: str) -> str:
    """A name as it may stand in a span."""
    return "".join(char if char.isprintable() else " " for char in text[:MAX_NAME])


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


class OpenStep(NamedTuple):
    """A step that has started."""

    at: datetime
    attempt: int


@dataclass
class OpenTurn:
    """A turn that an agent was asked to take and has not answered."""

    since: datetime
    ref: SpanRef
    parent: SpanRef
    step: str
    """Empty where the record does not say in which step it is taken."""
    role: str
    agent: str
    active_at: datetime
    """Start of the model's present work: it was asked, or a call of it came to its end."""
    answers: int = 0
    stop: str = ""
    """The limit that ended it."""


@dataclass
class OpenRun:
    """The unfinished parts of a run that this process hosts."""

    run: HostedRun
    since: datetime
    latest: datetime
    steps: dict[str, OpenStep] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Steps whose span was ended by a failure that is not their end."""
    turns: list[OpenTurn] = field(default_factory=list)
    calls: dict[str, tuple[datetime, ToolRequested, SpanRef]] = field(default_factory=dict)


def turn_in(step: str, begun: OpenRun) -> OpenTurn | None:
    """The open turn of a step; None where there is none, or nothing tells it from others."""
    turns = [turn for turn in begun.turns if turn.step == step]
    return turns[0] if len(turns) == 1 else None


def current(run: HostedRun, begun: OpenRun) -> SpanRef:
    """The current span: the one open step, or the run when several are open or none is."""
    if len(begun.steps) == 1:
        [(step, opened)] = begun.steps.items()
        return step_span(run, step, opened.attempt)
    return span_ref_of(run.id)
