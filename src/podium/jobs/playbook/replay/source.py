"""Source of a replay: a run of this project or a trace file, with today's playbook and profile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from podium.app.app import Podium
from podium.core.errors import ConfigInvalid
from podium.core.events import Event
from podium.core.model import Json
from podium.core.work import Run, StepRecord
from podium.jobs.playbook.events import PlaybookEnded
from podium.jobs.playbook.loader import load_playbook, load_profile
from podium.jobs.playbook.models import PROFILE_FILE, Playbook, PluginProfile
from podium.jobs.playbook.replay.recording import EventDifference, Recording, difference
from podium.jobs.playbook.run_models import PlaybookJob
from podium.ports import EventQuery, StoreView


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
                return replace(mismatch, why="the trace was changed: the journal says otherwise")
        after += len(page)
    return None


def _page(query: EventQuery, view: StoreView) -> list[Event]:
    return view.events(query)


def _working_root(prepared: StepRecord | None) -> str:
    """Return the folder of its tools, a copy in a dry run."""
    output = prepared.output if prepared else None
    return str(output["root"]) if isinstance(output, dict) else ""
