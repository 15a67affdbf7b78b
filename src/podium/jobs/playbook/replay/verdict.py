"""Verdict of a replay, and traces exported so that they replay on any machine."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.app.app import Podium
from podium.core.errors import BadInput
from podium.core.model import Json
from podium.jobs.playbook.composition import registry_for
from podium.jobs.playbook.replay.driver import ReplayDriver
from podium.jobs.playbook.replay.recorded_store import ReplayState
from podium.jobs.playbook.replay.recorded_tools import RecordedClock, call_arguments_in
from podium.jobs.playbook.replay.recording import EventDifference, Recording, Tape, read_recording
from podium.jobs.playbook.replay.source import ReplaySource
from podium.jobs.playbook.run_models import PlaybookJob
from podium.testing import MemoryStore

NEUTRAL_ROOT = "/podium/plugin"
"""The root in traces that are to be replayed anywhere. There need not be such a folder."""


@dataclass(frozen=True)
class ReplayVerdict:
    """Result of a replay."""

    recording: Recording
    lines: tuple[dict[str, Json], ...]
    """Replayed events, as lines of a trace."""
    difference: EventDifference | None = None
    root: str = ""
    """Folder of the replay; it need not exist."""

    @property
    def is_same(self) -> bool:
        return self.difference is None

    @property
    def is_verbatim(self) -> bool:
        """True if a trace of the replay is the same, byte for byte."""
        return self.is_same and all(event.is_verbatim for event in self.recording.events)


async def replay(
    podium: Podium,
    recording: Recording,
    *,
    job: PlaybookJob,
    roots: Sequence[str],
    settings: Mapping[str, Json],
) -> ReplayVerdict:
    """Let the run happen again under today's tools, prompts and policy. Nothing outside of memory is changed.

    Digests of calls cover the folder they are made in, which a trace does not name: of `roots`, where it
    may have been, the first that fits is taken. `job` is what the run is given, `settings` are the terms that
    it is started under. Raises `BadInput` for a trace that cannot be replayed.
    """
    tried: list[ReplayVerdict] = []
    for root in dict.fromkeys((*filter(None, roots), NEUTRAL_ROOT)):
        tried.append(await replay_at(podium, recording, job, root, settings))
        if not _is_about_digests(tried[-1].difference):
            return tried[-1]
    return max(tried, key=lambda verdict: len(verdict.lines))


async def replay_at(
    podium: Podium,
    recording: Recording,
    job: PlaybookJob,
    root: str,
    settings: Mapping[str, Json],
    *,
    rebuilt: tuple[str, ...] = (),
) -> ReplayVerdict:
    """Replay in one folder. Fields in `rebuilt` may differ, and take their current values."""
    tape = Tape(recording)
    clean = podium.redactor.json_text
    memory = MemoryStore(RecordedClock(tape), clean=clean)
    call_arguments = call_arguments_in(recording, registry_for(job.profile).specs())
    placed = job.model_copy(update={"root": root})
    try:
        state = ReplayState(tape, memory, clean, rebuilt)
        await ReplayDriver(podium, state, placed, settings, call_arguments).drive()
    finally:
        await memory.close()
    return ReplayVerdict(recording, tuple(tape.lines), tape.difference, root)


def _is_about_digests(difference: EventDifference | None) -> bool:
    return difference is not None and any(field.field == "digest" for field in difference.fields)


HOME = "/podium/home"
PROJECT = "/podium/project"
HOST = "host"
PREFIX = "/usr"


async def exported(podium: Podium, source: ReplaySource, root: str) -> bytes:
    """The trace of a run that worked in `root`. Raises `BadInput` when it cannot do without that name."""
    job, settings = source.job, source.settings
    there = _recording(_renamed(source.recording, _names(podium, root)), source.recording.name)
    again = await replay_at(podium, there, job, NEUTRAL_ROOT, settings, rebuilt=("digest",))
    if again.difference is None:
        neutral = _recording(again.lines, source.recording.name)
        again = await replay(podium, neutral, job=job, roots=(), settings=settings)
    if again.difference is not None:
        at, kind = again.difference.seq, again.difference.type
        raise BadInput(
            f"{source.recording.name}: event {at} ({kind}) depends on the folder that the run worked in; record it "
            "with paths from that folder on"
        )
    return _written(again.lines)


def _names(podium: Podium, root: str) -> dict[str, str]:
    """Map folders of this machine to neutral names, the innermost first."""
    names = {
        # Tracebacks of commands name where Python lies.
        sys.base_prefix: PREFIX,
        podium.environ.get("HOME", ""): HOME,
        str(podium.folders.user_state): HOME,
        str(podium.folders.project.resolve()): PROJECT,
        root: NEUTRAL_ROOT,
    }
    private_names = [name for name in names if name not in ("", "/", PREFIX)]
    return {name: names[name] for name in sorted(private_names, key=len, reverse=True)}


def _renamed(recording: Recording, names: Mapping[str, str]) -> tuple[dict[str, Json], ...]:
    text = json.dumps([event.data for event in recording.events])
    for name, other in names.items():
        whole = rf"(?<![\w.-]){re.escape(json.dumps(name)[1:-1])}(?![\w.-])"
        text = re.sub(whole, other, text)
    lines: list[dict[str, Json]] = json.loads(text)
    return tuple({**line, "host": HOST} if line["type"] == "run_pinned" else line for line in lines)


def _recording(lines: tuple[dict[str, Json], ...], name: str) -> Recording:
    return read_recording(io.BytesIO(_written(lines)), name)


def _written(lines: tuple[dict[str, Json], ...]) -> bytes:
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    return text.encode(errors="backslashreplace")
