"""Rows of a trace: events folded so that a call is one row from request to outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import ValidationError

from podium.core.events import KERNEL_EVENTS, EventBody, read_body
from podium.core.model import Json
from podium.render.event import view_event

Data = dict[str, Json]

OPEN = "open"
"""Outcome of a call of which nothing more is known."""

BEGUN = "begun"
"""Outcome of a call that goes on, for somebody who watches."""

MAX_OPEN = 10_000
MAX_OPEN_CHARACTERS = 64 * 1024 * 1024
"""So many calls, and lines so long, may be open before the oldest is given up: memory stays bounded."""

MAX_TOOLS = 100

_ENDS = {
    "tool_completed": "completed",
    "tool_failed": "FAILED",
    "tool_in_doubt": "IN DOUBT",
    "tool_abandoned": "abandoned",
}
_COUNTED = {
    "tool_requested",
    "tool_completed",
    "tool_failed",
    "tool_refused",
    "usage_recorded",
    "model_answered",
}
_FAILURES = {"tool_failed", "tool_in_doubt", "step_broke", "run_failed", "agent_stopped"}


class Row(NamedTuple):
    """A line of the timeline. Of a call `data` is how it ended and `request` how it began."""

    outcome: str
    """Of a call; empty for any other event."""
    data: Data
    request: Data | None = None


# A row's own `__new__` is Python, and takes several times as long.
_new = tuple.__new__


@dataclass
class Totals:
    """Totals so far, of shown and hidden rows."""

    events: int = 0
    calls: int = 0
    completed: int = 0
    refused: int = 0
    failed: int = 0
    model_answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    last_seq: int = 0
    tools: set[str] = field(default_factory=set)
    """Names of those that were called, up to a number."""

    def add(self, data: Data) -> None:
        self.events += 1
        self.last_seq = data["seq"]
        kind = data["type"]
        if kind in _COUNTED:
            self._count(kind, data)

    def _count(self, kind: str, data: Data) -> None:
        match kind:
            case "tool_requested":
                self._call(data)
            case "tool_completed":
                self.completed += 1
            case "tool_failed":
                self.failed += 1
            case "tool_refused":
                self.refused += 1
                self._call(data)
            case "model_answered":
                self.model_answers += 1
            case "usage_recorded":
                used = figures(data)
                self.input_tokens += used.input_tokens
                self.output_tokens += used.output_tokens
                self.usd += used.usd

    def _call(self, data: Data) -> None:
        self.calls += 1
        tool = data.get("tool")
        if isinstance(tool, str) and len(self.tools) < MAX_TOOLS:
            self.tools.add(tool)

    def record(self) -> dict[str, Json]:
        names = ("events", "calls", "completed", "refused", "failed", "model_answers")
        return {
            **{name: getattr(self, name) for name in names},
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "usd": round(self.usd, 6),
            "last_seq": self.last_seq,
        }


class Folding:
    """Makes rows of events, each as soon as it is known: a call stands where it ended."""

    def __init__(self, *, every_event: bool = False) -> None:
        self._every_event = every_event
        self._open: dict[str, tuple[Data, int]] = {}
        self._open_characters = 0
        self.live = False
        """Calls are also shown when they begin, for somebody who watches."""

    def rows(self, data: Data, characters: int = 0) -> Sequence[Row]:
        """The rows to show now that this has happened, which took so many characters to say."""
        kind = data["type"]
        if self._every_event or kind[:5] != "tool_":
            return (_new(Row, ("", data, None)),)
        if kind == "tool_requested":
            return self._begun(data, characters)
        if kind == "tool_refused":
            return (Row("asks" if data.get("effect") == "ask" else "DENIED", data),)
        if kind in _ENDS:
            return (_new(Row, (_ENDS[kind], data, self._taken(str(data.get("call"))))),)
        return (Row("", data),)

    def _begun(self, data: Data, characters: int) -> Sequence[Row]:
        call = str(data.get("call"))
        dropped = [self._taken(call)] if call in self._open else []
        self._open[call] = (data, characters)
        self._open_characters += characters
        while len(self._open) > MAX_OPEN or self._open_characters > MAX_OPEN_CHARACTERS:
            dropped.append(self._taken(next(iter(self._open))))
        if not dropped and not self.live:
            return ()
        rows = [Row(OPEN, row, row) for row in dropped if row is not None]
        return [*rows, Row(BEGUN, data, data)] if self.live else rows

    def _taken(self, call: str) -> Data | None:
        data, characters = self._open.pop(call, (None, 0))
        self._open_characters -= characters
        return data

    def rest(self) -> Iterator[Row]:
        """Calls of which the trace does not say how they ended."""
        for data, _ in self._open.values():
            yield Row(OPEN, data, data)


class RowFilter(NamedTuple):
    """A filter of rows."""

    tool: str = ""
    failed: bool = False

    def fits(self, data: Data) -> bool:
        """Tell whether the row is shown that this event ends."""
        if self.tool and data.get("tool") != self.tool:
            return False
        return not self.failed or has_failed(data)


def has_failed(data: Data) -> bool:
    """Tell whether this event tells of something that went wrong. To be asked about something is no failure."""
    match data["type"]:
        case "tool_refused":
            return bool(data.get("effect") != "ask")
        case "checks_ran":
            return data.get("passed") is False
        case kind:
            return kind in _FAILURES or _failed_in_job(data)


_ENVELOPE = ("run", "seq", "at")


def body_of(data: Data) -> EventBody | None:
    """The event as its class has it. None: it is not what its type says."""
    try:
        return read_body({key: value for key, value in data.items() if key not in _ENVELOPE})
    except (ValidationError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def _failed_in_job(data: Data) -> bool:
    """Tell whether an event of a job is a failure, as its job shows it."""
    if str(data["type"]) in KERNEL_EVENTS or (body := body_of(data)) is None:
        return False
    return view_event(body).outcome == "bad"


class Figures(NamedTuple):
    """Usage in one event."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


def figures(data: Data) -> Figures:
    """The usage of this event; nothing where it says nothing."""
    used = data.get("usage")
    if not isinstance(used, dict):
        return Figures()
    tokens = int(number(used.get("input_tokens"))), int(number(used.get("output_tokens")))
    return Figures(*tokens, number(used.get("usd")))


def number(value: Json) -> float:
    """A figure of a trace; nothing for what is none."""
    kind = type(value)
    return value if (kind is float or kind is int) and -1e15 < value < 1e15 else 0.0
