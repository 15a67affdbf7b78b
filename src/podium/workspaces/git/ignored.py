"""Which of the files that git ignores are worth keeping: settings and notes, not what a build makes."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from podium.workspaces.git.measuring import measure
from podium.workspaces.git.walking import files_within

LARGEST_FILE_BYTES = 1_000_000
LARGEST_FOLDER_BYTES = 1_000_000
MOST_IN_FOLDER = 100
LARGEST_TOTAL_BYTES = 20_000_000


_MOST_TOLD = 20


def sorted_ignored(worktree: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the ignored files and folders (these end with `/`) the small ones as single files, and the rest.

    The rest is told in words, with sizes.
    """
    kept, large = small_and_large(worktree, names)
    return kept, told_large(worktree, large)


def small_and_large(worktree: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The small ones as single files, and the names of the rest."""
    kept: list[str] = []
    large: list[str] = []
    total = 0
    for name in names:
        sizes = _folder(worktree, name) if name.endswith("/") else _file(worktree, name)
        if sizes is None or total + sum(sizes.values()) > LARGEST_TOTAL_BYTES:
            large.append(name)
        else:
            kept += sizes
            total += sum(sizes.values())
    return kept, large


def told_large(worktree: Path, names: Sequence[str]) -> list[str]:
    """The large ones in words, with sizes; of many the first."""
    told = [f"ignored: {name!r} ({_size(worktree, name)})" for name in names[:_MOST_TOLD]]
    more = len(names) - _MOST_TOLD
    return [*told, f"ignored: {more} more"] if more > 0 else told


def _size(worktree: Path, name: str) -> str:
    place = worktree / name
    size = measure(place).bytes if name.endswith("/") else os.lstat(place).st_size
    return f"{size / 1_000_000:.1f} MB"


def _file(worktree: Path, name: str) -> dict[str, int] | None:
    """The file, nothing for what is no file, None when it is a large one."""
    try:
        found = os.lstat(worktree / name)
    except OSError:
        return {}
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        return {}
    return {name: found.st_size} if found.st_size <= LARGEST_FILE_BYTES else None


def _folder(worktree: Path, name: str) -> dict[str, int] | None:
    """All its files, or None when it is a large one."""
    sizes: dict[str, int] = {}
    for entry in files_within(worktree / name):
        one = _file(worktree, str(Path(entry.path).relative_to(worktree)))
        if one is None:
            return None
        sizes |= one
        if len(sizes) > MOST_IN_FOLDER or sum(sizes.values()) > LARGEST_FOLDER_BYTES:
            return None
    return sizes
