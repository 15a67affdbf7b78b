"""Replay of a recorded run from its source to the verdict, and traces exported so that they replay on any machine."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from podium.app.app import Podium
from podium.core.errors import BadInput, ConfigInvalid
from podium.core.events import Event
from podium.core.model import Json
from podium.core.work import Run, StepRecord
from podium.jobs.playbook.composition import registry_for
from podium.jobs.playbook.events import PlaybookEnded
from podium.jobs.playbook.loader import load_playbook, load_profile
from podium.jobs.playbook.models import PROFILE_FILE, Playbook, PlaybookJob, PluginProfile
from podium.jobs.playbook.replay.driver import ReplayDriver
from podium.jobs.playbook.replay.recorded_ports import RecordedClock, ReplayState, call_arguments_in
from podium.jobs.playbook.replay.recording import (
    EventDifference,
    Recording,
    Tape,
    difference,
    read_recording,
)
from podium.ports import EventQuery, StoreView
from podium.testing import MemoryStore


def with_texts_of_today(recording: Recording, folders: Iterable[Path]) -> PlaybookJob:
    """Build the job with the current texts of its files. Files that cannot be read, or that the run changed or may have
    changed, stay as recorded.

    Equal texts stay as recorded as well, since their line numbers may differ.
    """
    job = recording.job()
    changed = _changed_in(recording)
    if changed is None:
        return job
    source_folders = [_SourceFolder(folder, changed) for folder in dict.fromkeys(folders)]
    playbook = next(_playbooks(job, source_folders), job.playbook)
    profile = next(_profiles(job, source_folders), job.profile)
    update: dict[str, Playbook | PluginProfile] = {}
    if playbook.digest() != job.playbook.digest():
        update["playbook"] = playbook
    if profile.digest() != job.profile.digest():
        update["profile"] = profile
    return job.model_copy(update=update)


def _changed_in(recording: Recording) -> tuple[str, ...] | None:
    """Return the files that the run changed. None: it ended before they were compared."""
    bodies = (event.body for event in recording.events)
    ends = [body.changed for body in bodies if isinstance(body, PlaybookEnded)]
    return ends[-1] if ends else None


@dataclass(frozen=True)
class _SourceFolder:
    """A folder to look in for files that the run did not change."""

    folder: Path
    changed: tuple[str, ...]

    def file(self, name: str) -> Path | None:
        path = self.folder / name
        return path if path.is_file() and name not in self.changed else None


def _playbooks(job: PlaybookJob, source_folders: list[_SourceFolder]) -> Iterator[Playbook]:
    """Find playbooks of the same name. An included page has another, or none."""
    files = dict.fromkeys(step.file for step in job.playbook.steps if step.file)
    for source_folder in source_folders:
        for name in files:
            with suppress(ConfigInvalid, OSError):
                file = source_folder.file(name)
                playbook = _loaded(source_folder.folder, file) if file else None
                if playbook is not None and playbook.head.name == job.playbook.head.name:
                    yield playbook


def _loaded(folder: Path, file: Path) -> Playbook:
    """Load the playbook with file names relative to the folder."""
    if not file.is_relative_to(folder):
        return load_playbook(file)
    playbook = load_playbook(file, folder)
    steps = [
        step.model_copy(update={"file": os.path.relpath(step.file, folder)})
        for step in playbook.steps
    ]
    return playbook.model_copy(update={"steps": tuple(steps)})


def _profiles(job: PlaybookJob, source_folders: list[_SourceFolder]) -> Iterator[PluginProfile]:
    for source_folder in source_folders:
        with suppress(ConfigInvalid, OSError):
            file = source_folder.file(PROFILE_FILE)
            profile = load_profile(file) if file else None
            if profile is not None and profile.name == job.profile.name:
                yield profile


PAGE = 1_000


@dataclass(frozen=True)
class ReplaySource:
    """A trace, and how to replay it."""

    recording: Recording
    job: PlaybookJob
    roots: tuple[str, ...] = ()
    """Folders that the run may have worked in, likeliest first."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Settings that it was started with."""
    is_own: bool = False
    """True if the trace is this project's own, not one from elsewhere."""


async def source_of_run(podium: Podium, recording: Recording, run: Run) -> ReplaySource:
    """Build the source of a run of this project, whose folder and settings are in the record."""
    store = await podium.store()
    prepared = await store.read(lambda view: view.step(run.id, "prepare"))
    job_input = run.input if isinstance(run.input, dict) else {}
    root = str(job_input.get("root", podium.folders.project))
    job = with_texts_of_today(recording, [Path(root), podium.folders.project])
    return ReplaySource(recording, job, (_working_root(prepared), root), run.settings, is_own=True)


def source_of_file(podium: Podium, recording: Recording, file: Path | None) -> ReplaySource:
    """Build the source of a trace file, which may be in a project's state, next to its playbook, or anywhere."""
    project = podium.folders.project.resolve()
    above = file.resolve().parents if file else ()
    own = [parent.parent for parent in above if parent.name == podium.folders.state.name][:1]
    beside = [above[0]] if above else []
    job = with_texts_of_today(recording, [*own, *beside])
    roots = tuple(str(root) for root in (*own, project))
    is_own = podium.folders.state.resolve() in above
    return ReplaySource(recording, job, roots, podium.configuration.run_settings(), is_own)


async def journal_difference(podium: Podium, recording: Recording) -> EventDifference | None:
    """The first event of a trace that the journal has otherwise. None: there is none, or no such run here.

    A replay trusts the recorded results of tools. With the journal at hand they are verified.
    """
    if not podium.has_record:
        return None
    store = await podium.store()
    after = 0
    while after < len(recording.events):
        query = EventQuery(run_id=recording.run_id, after_seq=after, limit=PAGE)
        page = await store.read(partial(_page, query))
        if not page:
            return None
        for event, recorded in zip(page, recording.events[after:], strict=False):
            if (mismatch := difference(event.line(), recorded.data)) is not None:
                return replace(
                    mismatch, why="the trace was changed; the journal has something else"
                )
        after += len(page)
    return None


def _page(query: EventQuery, view: StoreView) -> list[Event]:
    return view.events(query)


def _working_root(prepared: StepRecord | None) -> str:
    """Return the folder of its tools, a copy in a dry run."""
    output = prepared.output if prepared else None
    return str(output["root"]) if isinstance(output, dict) else ""


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
            "with paths relative to that folder"
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
