"""The texts of today: playbook and profile where a run found them, as they are now."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podium.domain.errors import ConfigInvalid
from podium.domain.events import PlaybookEnded
from podium.domain.playbook_runs import PlaybookJob
from podium.domain.playbooks import PROFILE_FILE, Playbook, Profile
from podium.wiring.playbooks import load_playbook, load_profile
from podium.wiring.replay.reading import Recording


def with_texts_of_today(recording: Recording, folders: Iterable[Path]) -> PlaybookJob:
    """The run's job with what its files say now. What cannot be read any more is as it was recorded, and so is
    what the run itself changed, or may have.

    What says the same is left as it was recorded, for its places in the files may be others.
    """
    job = recording.job()
    changed = _changed_in(recording)
    if changed is None:
        return job
    places = [_Place(folder, changed) for folder in dict.fromkeys(folders)]
    playbook = next(_playbooks(job, places), job.playbook)
    profile = next(_profiles(job, places), job.profile)
    update: dict[str, Playbook | Profile] = {}
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
class _Place:
    """A folder to look in for files that the run did not change."""

    folder: Path
    changed: tuple[str, ...]

    def file(self, name: str) -> Path | None:
        path = self.folder / name
        return path if path.is_file() and name not in self.changed else None


def _playbooks(job: PlaybookJob, places: list[_Place]) -> Iterator[Playbook]:
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


def _profiles(job: PlaybookJob, places: list[_Place]) -> Iterator[Profile]:
    for place in places:
        with suppress(ConfigInvalid, OSError):
            file = place.file(PROFILE_FILE)
            found = load_profile(file) if file else None
            if found is not None and found.name == job.profile.name:
                yield found
