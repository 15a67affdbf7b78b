"""Events of a trace folded into rows: a call is one row, from its request to what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from podium.domain.model import Json

Data = dict[str, Json]

OPEN = "open"
"""How a call is shown of which nothing more is known."""

MOST_OPEN = 10_000
MOST_OPEN_CHARACTERS = 64 * 1024 * 1024
"""So many calls, and lines so long, may be open before the oldest is given up: memory stays bounded."""

MOST_TOOLS = 100

_ENDS = {
    "tool_completed": "completed",
    "tool_failed": "FAILED",
    "tool_in_doubt": "IN DOUBT",
    "tool_abandoned": "abandoned",
}
_FAILURES = {"tool_failed", "tool_in_doubt", "step_broke", "run_failed"}


class Row(NamedTuple):
    """A line of the timeline. Of a call `data` is how it ended and `request` how it began."""

    outcome: str
    """Of a call; empty for any other event."""
    data: Data
    request: Data | None = None


@dataclass
class Totals:
    """What there was so far, shown or not."""

    events: int = 0
    calls: int = 0
    completed: int = 0
    refused: int = 0
    failed: int = 0
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
        if kind == "usage_recorded":
            self._spend(data.get("usage"))
        elif kind.startswith("tool_"):
            self._count(kind, data.get("tool"))

    def _count(self, kind: str, tool: Json) -> None:
        if kind == "tool_completed":
            self.completed += 1
            return
        if kind == "tool_failed":
            self.failed += 1
            return
        self.refused += kind == "tool_refused"
        if kind in ("tool_requested", "tool_refused"):
            self.calls += 1
            if len(self.tools) < MOST_TOOLS and isinstance(tool, str):
                self.tools.add(tool)

    def _spend(self, used: Json) -> None:
        if isinstance(used, dict):
            self.input_tokens += int(number(used.get("input_tokens")))
            self.output_tokens += int(number(used.get("output_tokens")))
            self.usd += number(used.get("usd"))

    def record(self) -> dict[str, Json]:
        names = ("events", "calls", "completed", "refused", "failed")
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

    def rows(self, data: Data, characters: int = 0) -> Iterator[Row]:
        """What there is to show now that this has happened, which took so many characters to say."""
        kind = data["type"]
        if self._every_event or not kind.startswith("tool_"):
            yield Row("", data)
        elif kind == "tool_requested":
            yield from self._begun(data, characters)
        elif kind == "tool_refused":
            yield Row("asks" if data.get("effect") == "ask" else "DENIED", data)
        elif kind in _ENDS:
            yield Row(_ENDS[kind], data, self._taken(str(data.get("call"))))
        else:
            yield Row("", data)

    def _begun(self, data: Data, characters: int) -> Iterator[Row]:
        call = str(data.get("call"))
        if (same := self._taken(call)) is not None:
            yield Row(OPEN, same, same)
        self._open[call] = (data, characters)
        self._open_characters += characters
        while len(self._open) > MOST_OPEN or self._open_characters > MOST_OPEN_CHARACTERS:
            oldest = self._taken(next(iter(self._open)))
            if oldest is not None:
                yield Row(OPEN, oldest, oldest)
        if self.live:
            yield Row("begun", data, data)

    def _taken(self, call: str) -> Data | None:
        data, characters = self._open.pop(call, (None, 0))
        self._open_characters -= characters
        return data

    def rest(self) -> Iterator[Row]:
        """Calls of which the trace does not say how they ended."""
        for data, _ in self._open.values():
            yield Row(OPEN, data, data)


class Wanted(NamedTuple):
    """Which rows are shown."""

    tool: str = ""
    failed: bool = False

    def fits(self, row: Row) -> bool:
        if self.tool and row.data.get("tool") != self.tool:
            return False
        return not self.failed or has_failed(row.data)


def has_failed(data: Data) -> bool:
    """Whether this event tells of something that went wrong. To be asked about something is no failure."""
    match data["type"]:
        case "tool_refused":
            return bool(data.get("effect") != "ask")
        case "checks_ran":
            return data.get("passed") is False
        case kind:
            return kind in _FAILURES


def number(value: Json) -> float:
    """A figure of a trace; nothing for what is none."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return value if good else 0.0
