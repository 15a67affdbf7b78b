"""A replay from the trace to the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.domain.model import Json
from podium.domain.playbook_runs import PlaybookJob
from podium.testing import MemoryStore
from podium.wiring.playbooking import registry_for
from podium.wiring.podium import Podium
from podium.wiring.replay.comparing import Difference
from podium.wiring.replay.driving import Driver
from podium.wiring.replay.reading import Recording
from podium.wiring.replay.recorded_store import Room
from podium.wiring.replay.tape import Tape
from podium.wiring.replay.timing import RecordedClock
from podium.wiring.replay.wishes import wishes_in

NEUTRAL_ROOT = "/podium/plugin"
"""The root in traces that are to be replayed anywhere. There need not be such a folder."""


@dataclass(frozen=True)
class Replayed:
    """What came of a replay."""

    recording: Recording
    lines: tuple[dict[str, Json], ...]
    """The events that happened again, as a trace would have them."""
    difference: Difference | None = None
    root: str = ""
    """The folder that it happened in again; there need not be one."""

    @property
    def is_same(self) -> bool:
        return self.difference is None

    @property
    def is_verbatim(self) -> bool:
        """Whether a trace of the replay is the same, byte for byte."""
        return self.is_same and all(event.is_verbatim for event in self.recording.events)


async def replay(
    podium: Podium,
    recording: Recording,
    *,
    job: PlaybookJob,
    roots: Sequence[str],
    settings: Mapping[str, Json],
) -> Replayed:
    """Let the run happen again under today's tools, prompts and policy. Nothing outside of memory is changed.

    Digests of calls cover the folder they are made in, which a trace does not name: of `roots`, where it
    may have been, the first that fits is taken. `job` is what the run is given, `settings` are the terms that
    it is started under. Raises `BadInput` for a trace that cannot be replayed.
    """
    tried: list[Replayed] = []
    for root in dict.fromkeys((*filter(None, roots), NEUTRAL_ROOT)):
        tried.append(await replay_at(podium, recording, job, root, settings))
        if not _is_about_digests(tried[-1].difference):
            return tried[-1]
    return max(tried, key=lambda each: len(each.lines))


async def replay_at(
    podium: Podium,
    recording: Recording,
    job: PlaybookJob,
    root: str,
    settings: Mapping[str, Json],
    *,
    rebuilt: tuple[str, ...] = (),
) -> Replayed:
    """The same in one folder. Fields that are `rebuilt` may differ, and are then as they are now."""
    tape = Tape(recording)
    clean = podium.redactor.json_text
    memory = MemoryStore(RecordedClock(tape), clean=clean)
    wishes = wishes_in(recording, registry_for(job.profile).specs())
    placed = job.model_copy(update={"root": root})
    try:
        room = Room(tape, memory, clean, rebuilt)
        await Driver(podium, room, placed, settings, wishes).drive()
    finally:
        await memory.close()
    return Replayed(recording, tuple(tape.lines), tape.difference, root)


def _is_about_digests(difference: Difference | None) -> bool:
    return difference is not None and any(each.field == "digest" for each in difference.fields)
