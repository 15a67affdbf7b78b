"""A run of a playbook as files have it: the playbook, its profile, the folder to work in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from podium.domain.errors import BadInput, ConfigInvalid
from podium.domain.playbook_runs import PlaybookJob
from podium.wiring.playbooking import playbook_job
from podium.wiring.playbooks import load_profile, read_playbook

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


def job_of_files(
    podium: Podium,
    file: Path,
    *,
    profile: Path | None = None,
    root: Path | None = None,
    agent: str = "",
    inputs: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> PlaybookJob:
    """The job, with everything looked at. Raises `BadInput`, or `ConfigInvalid` with every fault at its place."""
    place = root or podium.folders.project
    if not place.is_dir():
        raise BadInput(f"there is no folder {str(place)!r}; name one with --root DIR")
    beneath = file.absolute().is_relative_to(podium.folders.project.absolute())
    loaded = read_playbook(file, podium.folders.project if beneath else None)
    known = load_profile(profile or place)
    if faults := loaded.disagreements(known):
        raise ConfigInvalid(str(file), faults)
    return playbook_job(
        podium, loaded.playbook, known, root=place, agent=agent, inputs=inputs, dry_run=dry_run
    )
