"""A trace as something that can be replayed: every event read, whole and in order, or a word on why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from pydantic import ValidationError

from podium.domain.errors import BadInput
from podium.domain.events import AnyEvent, Event, PlaybookBegan, RunQueued, read_body
from podium.domain.model import Json
from podium.domain.playbook_runs import PLAYBOOK, PlaybookJob
from podium.journal.trace_reading import Traced, TraceReading

MOST_EVENTS = 200_000
MOST_BYTES = 256 * 2**20
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
"""What the last event can be when nobody is at work on the run."""
_ENVELOPE = ("run", "seq", "at")


@dataclass(frozen=True)
class Recorded:
    """One event of a trace."""

    seq: int
    at: datetime
    body: AnyEvent
    data: dict[str, Json]
    """Flat, as today's Podium would write it down."""
    is_verbatim: bool
    """Whether the line says exactly that, byte for byte."""


@dataclass(frozen=True)
class Recording:
    """A whole trace of one run of a playbook."""

    name: str
    run_id: str
    events: tuple[Recorded, ...]

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
        """What the run was given. Raises `BadInput` where the trace does not say it."""
        if not self.began.job:
            raise BadInput(
                f"{self.name}: the trace does not say what the run was given; it is older than replay is"
            )
        try:
            return PlaybookJob.model_validate(self.began.job)
        except ValidationError as error:
            raise BadInput(
                f"{self.name}: event {self._began_at()}: what the run was given does not fit: "
                f"{_first_fault(error)}"
            ) from None

    def _began_at(self) -> int:
        return next(each.seq for each in self.events if isinstance(each.body, PlaybookBegan))


def read_recording(file: BinaryIO, name: str) -> Recording:
    """All of a trace. Raises `BadInput` for one that is damaged, cut off, too large or no playbook's."""
    reading = TraceReading(file, name)
    events = tuple(_whole(reading.events(), name))
    if reading.faults:
        raise BadInput(f"{reading.faults[0]}; a damaged trace cannot be replayed")
    if not events:
        raise BadInput(f"{name} holds no events")
    if reading.torn:
        raise BadInput(f"{name} is cut off behind event {events[-1].seq}: its last line has no end")
    recording = Recording(name, str(events[0].data["run"]), events)
    _refuse_others(recording)
    return recording


def _whole(traced: Iterable[Traced], name: str) -> Iterable[Recorded]:
    size = 0
    for number, each in enumerate(traced, start=1):
        size += len(each.line)
        if number > MOST_EVENTS or size > MOST_BYTES:
            raise BadInput(
                f"{name} is too large to be replayed: at most {MOST_EVENTS} events and "
                f"{MOST_BYTES // 2**20} MB are"
            )
        yield _recorded(each, name)


def _recorded(traced: Traced, name: str) -> Recorded:
    data = traced.data
    place = f"{name}: event {data['seq']}"
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
            f"{place} ({str(data['type'])[:40]!r}) is none that this Podium knows: {_first_fault(error)}"
        ) from None
    if body.version > type(body).model_fields["version"].default:
        raise BadInput(f"{place} was written by a newer Podium (version {body.version})")
    line = event.line()
    return Recorded(event.seq, event.at, body, line, line == data and list(line) == list(data))


def _refuse_others(recording: Recording) -> None:
    name, first, last = recording.name, recording.events[0], recording.events[-1]
    if first.seq != 1 or not isinstance(first.body, RunQueued):
        raise BadInput(
            f"{name} does not begin with the beginning of a run; its first lines are missing"
        )
    if first.body.flow != PLAYBOOK:
        raise BadInput(
            f"{name} is of a run of flow {first.body.flow!r}; only runs of playbooks can be replayed"
        )
    if any(event.data["run"] != recording.run_id for event in recording.events):
        raise BadInput(f"{name} holds events of more than one run")
    if last.body.type not in AT_REST:
        raise BadInput(
            f"{name} ends in the middle of its run, behind event {last.seq} ({last.body.type}): it was cut off, or "
            f"the run is still at work or was killed; `podium resume {recording.run_id}` goes on with it"
        )


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'it'}: {fault['msg']}"
