"""Further guarded files of a project: what its worker and schedulers act on."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from podium.flows.sense.options import SenseOptions
from podium.wiring.configuration import Configuration
from podium.wiring.sense_policy import LAUNCHERS, steering
from podium.wiring.sense_settings import options_in_force


def guarded_paths(configuration: Configuration, repository: str) -> list[str]:
    """From the top of the checkout on. In a repository of another project, what comes with Podium counts too."""
    top = os.path.realpath(repository)
    project = os.path.realpath(configuration.folders.project)
    names = _of_sense(options_in_force(configuration))
    if os.path.commonpath((top, project)) != top:
        names += _of_sense(SenseOptions())
        return [name for name in map(posixpath.normpath, names) if _is_inside(name)]
    # By its name, and where links lead now.
    places = [os.path.normpath(Path(project, name)) for name in names]
    places += list(map(os.path.realpath, places))
    return [inner for inner in (os.path.relpath(each, top) for each in places) if _is_inside(inner)]


def _of_sense(options: SenseOptions) -> list[str]:
    """Where orders and candidates lie, what they are answered with, and what starts or steers the loop."""
    layout = options.layout
    folders = (layout.inbox, layout.claimed, layout.done, layout.parked, layout.acks)
    return [*folders, *steering(options), *LAUNCHERS]


def _is_inside(path: str) -> bool:
    return path not in (".", "..") and not path.startswith(("../", "/"))
