"""Pipes and the like among files that git reads: it would wait for the other end for ever."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.private_dir import borrowed_objects
from podium.workspaces.git.private_refs import read_plain
from podium.workspaces.git.records import write_whole
from podium.workspaces.git.walking import files_within


def mend_private_dir(record: WorkspaceRecord) -> None:
    """Let nothing in the private git directory keep git waiting, or lead it to other repositories' objects.

    Only while no process of the agent lives.
    """
    git = Path(record.private, "git")
    remove_pipes(git)
    place, wanted = git / "objects/info/alternates", borrowed_objects(record.git_dir)
    if read_plain(place) != wanted and not place.parent.is_symlink():
        with suppress(OSError):
            if place.is_symlink():
                place.unlink()
            write_whole(place, wanted)


def remove_pipes(folder: Path) -> None:
    """There is nothing in them. A link to one goes too."""
    links = []
    for entry in files_within(folder):
        with suppress(OSError):
            if entry.is_symlink():
                links.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)  # noqa: PTH108
    for link in links:
        with suppress(OSError):
            mode = os.stat(link).st_mode  # noqa: PTH116
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                os.unlink(link)  # noqa: PTH108
