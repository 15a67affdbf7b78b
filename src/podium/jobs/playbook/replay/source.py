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
    """The run's job with what its files say now. What cannot be read any more is as it was recorded, and so is
    what the run itself changed, or may have.

    What says the same is left as it was recorded, for its places in the files may be others.
    """
    job = recording.job()
    changed = _changed_in(recording)
    if changed is None:
        return job
    places = [_SourceFolder(folder, changed) for folder in dict.fromkeys(folders)]
    playbook = next(_playbooks(job, places), job.playbook)
    profile = next(_profiles(job, places), job.profile)
    update: dict[str, Playbook | PluginProfile] = {}
    if playbook.digest() != job.playbook.digest():
        update["playbook"] = playbook
    if profile.digest() != job.profile.digest():
        update["profile"] = profile
    return job.model_copy(update=update)


def _changed_in(recording: Recording) -> tuple[str, ...] | None:
    """What the run left different. None: it has not come to where that was looked at."""
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


def _playbooks(job: PlaybookJob, places: list[_SourceFolder]) -> Iterator[Playbook]:
    """Those of its name. A page that it includes has another, or none."""
    files = dict.fromkeys(step.file for step in job.playbook.steps if step.file)
    for place in places:
        for name in files:
            with suppress(ConfigInvalid, OSError):
                file = place.file(name)
                found = _loaded(place.folder, file) if file else None
                if found is not None and found.head.name == job.playbook.head.name:
                    yield found


def _loaded(folder: Path, file: Path) -> Playbook:
    """The playbook, whose files are called as they are from the folder on."""
    if not file.is_relative_to(folder):
        return load_playbook(file)
    found = load_playbook(file, folder)
    steps = [
        step.model_copy(update={"file": os.path.relpath(step.file, folder)}) for step in found.steps
    ]
    return found.model_copy(update={"steps": tuple(steps)})


def _profiles(job: PlaybookJob, places: list[_SourceFolder]) -> Iterator[PluginProfile]:
    for place in places:
        with suppress(ConfigInvalid, OSError):
            file = place.file(PROFILE_FILE)
            found = load_profile(file) if file else None
            if found is not None and found.name == job.profile.name:
                yield found


PAGE = 1_000


@dataclass(frozen=True)
class ReplaySource:
    """A trace, and how to replay it."""

    recording: Recording
    job: PlaybookJob
    roots: tuple[str, ...] = ()
    """Folders that the run may have worked in, likeliest first."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """The terms that it was started under."""
    is_own: bool = False
    """Whether it is the trace that this project's journal keeps, rather than one that came from elsewhere."""


async def found_run(podium: Podium, recording: Recording, run: Run) -> ReplaySource:
    """A run of this project: its folder and its terms are in the record."""
    store = await podium.store()
    prepared = await store.read(lambda view: view.step(run.id, "prepare"))
    given = run.input if isinstance(run.input, dict) else {}
    root = str(given.get("root", podium.folders.project))
    job = with_texts_of_today(recording, [Path(root), podium.folders.project])
    return ReplaySource(recording, job, (_ground(prepared), root), run.settings, is_own=True)


def found_file(podium: Podium, recording: Recording, file: Path | None) -> ReplaySource:
    """A trace alone. It may lie in a project's state, beside its playbook, or anywhere."""
    project = podium.folders.project.resolve()
    above = file.resolve().parents if file else ()
    own = [each.parent for each in above if each.name == podium.folders.state.name][:1]
    beside = [above[0]] if above else []
    job = with_texts_of_today(recording, [*own, *beside])
    roots = tuple(str(each) for each in (*own, project))
    is_own = podium.folders.state.resolve() in above
    return ReplaySource(recording, job, roots, podium.configuration.run_settings(), is_own)


async def journal_difference(podium: Podium, recording: Recording) -> EventDifference | None:
    """The first event of a trace that the journal has otherwise. None: there is none, or no such run here.

    What tools gave back is believed in a replay. Where the record is at hand, nobody has to believe it.
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
            if (found := difference(event.line(), recorded.data)) is not None:
                return replace(found, why="the trace was changed: the journal says otherwise")
        after += len(page)
    return None


def _page(query: EventQuery, view: StoreView) -> list[Event]:
    return view.events(query)


def _ground(prepared: StepRecord | None) -> str:
    """Where its tools worked: a dry run's in a copy."""
    output = prepared.output if prepared else None
    return str(output["root"]) if isinstance(output, dict) else ""
