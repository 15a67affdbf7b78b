"""Recording of a run, read from its trace; how far it has been replayed, and how two events differ."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from pydantic import ValidationError

from podium.core.errors import BadInput
from podium.core.events import AnyEvent, Event, RunQueued, UnknownEvent, read_body
from podium.core.model import Json
from podium.jobs.playbook.events import PlaybookBegan
from podium.jobs.playbook.models import PLAYBOOK, PlaybookJob
from podium.store.trace_reader import TraceEntry, TraceReader

MAX_EVENTS = 200_000
MAX_BYTES = 256 * 2**20
"""A replay holds all of a trace in memory."""
AT_REST = frozenset(
    {
        "run_succeeded",
        "run_failed",
        "run_cancelled",
        "run_waiting",
        "run_needed_human",
        "run_parked",
        "approval_granted",
        "approval_rejected",
        "approval_expired",
        "signal_sent",
    }
)
"""Types of the last event of a run that no process works on."""
_ENVELOPE = ("run", "seq", "at")


@dataclass(frozen=True)
class RecordedEvent:
    """One event of a trace."""

    seq: int
    at: datetime
    body: AnyEvent
    data: dict[str, Json]
    """Flat, as today's Podium would write it."""
    is_verbatim: bool
    """True if the line equals `data`, byte for byte."""


@dataclass(frozen=True)
class Recording:
    """A whole trace of one run of a playbook."""

    name: str
    run_id: str
    events: tuple[RecordedEvent, ...]

    @property
    def began(self) -> PlaybookBegan:
        """Raises `BadInput` when the playbook was never begun."""
        for event in self.events:
            if isinstance(event.body, PlaybookBegan):
                return event.body
        raise BadInput(
            f"{self.name}: the run ended before its playbook began, so there is nothing to replay"
        )

    def before(self, seq: int) -> tuple[dict[str, Json], ...]:
        """The events before this one."""
        return tuple(event.data for event in self.events[: seq - 1])

    def job(self) -> PlaybookJob:
        """Return the job of the run. Raises `BadInput` if the trace does not contain it."""
        if not self.began.job:
            raise BadInput(
                f"{self.name}: the trace does not contain the input of the run; it was written before replay existed"
            )
        try:
            return PlaybookJob.model_validate(self.began.job)
        except ValidationError as error:
            raise BadInput(
                f"{self.name}: event {self._began_at()}: the input of the run is not valid: "
                f"{_first_problem(error)}"
            ) from None

    def _began_at(self) -> int:
        return next(event.seq for event in self.events if isinstance(event.body, PlaybookBegan))


def read_recording(file: BinaryIO, name: str) -> Recording:
    """Read a trace. Raises `BadInput` for one that is damaged, cut off, too large or not of a playbook."""
    reading = TraceReader(file, name)
    events = tuple(_whole(reading.events(), name))
    if reading.problems:
        raise BadInput(f"{reading.problems[0]}; a damaged trace cannot be replayed")
    if not events:
        raise BadInput(f"{name} contains no events")
    if reading.torn:
        raise BadInput(
            f"{name} is cut off after event {events[-1].seq}: its last line is incomplete"
        )
    recording = Recording(name, str(events[0].data["run"]), events)
    _refuse_others(recording)
    return recording


def _whole(traced: Iterable[TraceEntry], name: str) -> Iterable[RecordedEvent]:
    size = 0
    for number, entry in enumerate(traced, start=1):
        size += len(entry.line)
        if number > MAX_EVENTS or size > MAX_BYTES:
            raise BadInput(
                f"{name} is too large to replay; at most {MAX_EVENTS} events and {MAX_BYTES // 2**20} MB are allowed"
            )
        yield _recorded(entry, name)


def _recorded(traced: TraceEntry, name: str) -> RecordedEvent:
    data = traced.data
    location = f"{name}: event {data['seq']}"
    try:
        body = read_body({key: value for key, value in data.items() if key not in _ENVELOPE})
        event = Event.model_validate(
            {
                "run_id": data["run"],
                "position": 0,
                "body": body,
                "seq": data["seq"],
                "at": data["at"],
            }
        )
    except ValidationError as error:
        raise BadInput(
            f"{location} ({str(data['type'])[:40]!r}) is not an event that this Podium knows: {_first_problem(error)}"
        ) from None
    if isinstance(body, UnknownEvent):
        raise BadInput(f"{location} ({body.type[:40]!r}) is not an event that this Podium knows")
    if body.version > type(body).model_fields["version"].default:
        raise BadInput(f"{location} was written by a newer Podium (version {body.version})")
    line = event.line()
    return RecordedEvent(event.seq, event.at, body, line, line == data and list(line) == list(data))


def _refuse_others(recording: Recording) -> None:
    name, first, last = recording.name, recording.events[0], recording.events[-1]
    if first.seq != 1 or not isinstance(first.body, RunQueued):
        raise BadInput(
            f"{name} does not start at the beginning of a run; its first lines are missing"
        )
    if first.body.flow != PLAYBOOK:
        raise BadInput(
            f"{name} is the trace of a run of flow {first.body.flow!r}; only playbook runs can be replayed"
        )
    if any(event.data["run"] != recording.run_id for event in recording.events):
        raise BadInput(f"{name} contains events of more than one run")
    if last.body.type not in AT_REST:
        raise BadInput(
            f"{name} ends in the middle of its run, after event {last.seq} ({last.body.type}): it was cut off, or "
            f"the run is still active or was killed; continue the run with `podium resume {recording.run_id}`"
        )


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc'])) or 'it'}: {problem['msg']}"


OF_THE_PROCESS: dict[str, tuple[str, ...]] = {
    # Which process took the run; each has a name of its own.
    "run_started": ("owner",),
    # What the machine is called.
    "run_pinned": ("host",),
    # Measured by that machine's clock between two of its moments, which are not recorded themselves.
    "step_completed": ("seconds",),
}
"""Type of event → fields that come from where and when it happened. They are taken as recorded."""
ALWAYS_TAKEN = ("at",)
"""The time of each event is given back to the run as it was."""
SMALLEST_SHARE = 1e-12
"""Sums of the same numbers, made by a database and by Python, differ by less than this."""
MAX_FIELDS = 10
MAX_VALUE_CHARACTERS = 200

_MISSING = object()


@dataclass(frozen=True)
class FieldDifference:
    """One field that is not the same. None stands for a field that is not there."""

    field: str
    recorded: Json
    now: Json


@dataclass(frozen=True)
class EventDifference:
    """The first event that did not come again as it was recorded."""

    seq: int
    type: str
    fields: tuple[FieldDifference, ...] = ()
    why: str = ""
    """Reason, if it is not about fields."""

    def record(self) -> dict[str, Json]:
        return {
            "seq": self.seq,
            "type": self.type,
            "why": self.why,
            "fields": [
                {"field": field.field, "recorded": field.recorded, "now": field.now}
                for field in self.fields
            ],
        }


def as_recorded(now: Json, then: Json, event_type: str) -> dict[str, Json]:
    """Take fields that depend on process, machine or time from the recording."""
    taken = (*ALWAYS_TAKEN, *OF_THE_PROCESS.get(event_type, ()))
    return {
        name: then[name] if name in taken and name in then else _near(value, then.get(name))
        for name, value in now.items()
    }


def difference(now: dict[str, Json], then: dict[str, Json]) -> EventDifference | None:
    """Compare two events. None: they are equal."""
    if now == then:
        return None
    fields = tuple(_differing(now, then, ""))[:MAX_FIELDS]
    return EventDifference(seq=then["seq"], type=then["type"], fields=fields)


def _near(now: Json, then: Json) -> Json:
    """The recorded number where both are the same but for rounding."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {name: _near(value, then.get(name)) for name, value in now.items()}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [_near(*pair) for pair in zip(now, then, strict=True)]
    if isinstance(now, float) and isinstance(then, float):
        return then if math.isclose(now, then, rel_tol=SMALLEST_SHARE) else now
    return now


def _differing(now: Json, then: Json, path: str) -> Iterator[FieldDifference]:
    if isinstance(now, dict) and isinstance(then, dict):
        for name in dict.fromkeys((*then, *now)):
            one, other = now.get(name, _MISSING), then.get(name, _MISSING)
            if one != other:
                yield from _differing(one, other, f"{path}.{name}" if path else name)
    elif isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        for number, (one, other) in enumerate(zip(now, then, strict=True)):
            if one != other:
                yield from _differing(one, other, f"{path}[{number}]")
    else:
        yield FieldDifference(path, _excerpt(then, now), _excerpt(now, then))


def _excerpt(value: Json, other: Json) -> Json:
    """Shorten a long text to the part around the first difference."""
    if value is _MISSING:
        return None
    if not isinstance(value, str) or len(value) <= MAX_VALUE_CHARACTERS:
        return value
    start = 0
    if isinstance(other, str):
        pairs = zip(value, other, strict=False)
        same = next(
            (at for at, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(value), len(other))
        )
        start = max(0, same - MAX_VALUE_CHARACTERS // 4)
    part = value[start : start + MAX_VALUE_CHARACTERS]
    return f"{'…' if start else ''}{part}{'…' if start + MAX_VALUE_CHARACTERS < len(value) else ''}"


class Tape:
    """Advances by one for each event that happened as recorded. Stops at the first that did not."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.events = recording.events
        self.position = 0
        """Number of events that have happened again."""
        self.lines: list[dict[str, Json]] = []
        self.difference: EventDifference | None = None
        self._changed = asyncio.Event()

    @property
    def next(self) -> RecordedEvent | None:
        return self.events[self.position] if self.position < len(self.events) else None

    @property
    def is_over(self) -> bool:
        return self.difference is not None or self.next is None

    def rest(self, start: int | None = None) -> Iterator[tuple[int, AnyEvent]]:
        """List the remaining events with their positions."""
        begin = self.position if start is None else start
        return ((at, self.events[at].body) for at in range(begin, len(self.events)))

    def advance(self, lines: Sequence[dict[str, Json]]) -> None:
        if lines:
            self.lines.extend(lines)
            self.position += len(lines)
            self.wake_waiters()

    def differs(self, difference: EventDifference) -> None:
        """Record the first difference; later ones follow from it."""
        self.difference = self.difference or difference
        self.wake_waiters()

    def wake_waiters(self) -> None:
        """Wake all waiters."""
        wait_for_change, self._changed = self._changed, asyncio.Event()
        wait_for_change.set()

    async def wait_for_change(self) -> None:
        await self._changed.wait()

    async def reached(self, position: int) -> None:
        """Return when all before this position has happened again."""
        while self.position < position:
            await self.wait_for_change()

    async def moved(self, position: int) -> None:
        """Return when it has moved, or is over."""
        while self.position == position and not self.is_over:
            await self.wait_for_change()
