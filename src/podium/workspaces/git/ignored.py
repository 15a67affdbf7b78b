"""Which of the files that git ignores are worth keeping: settings and notes, not what a build makes."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

LARGEST_FILE_BYTES = 1_000_000
LARGEST_FOLDER_BYTES = 1_000_000
MOST_IN_FOLDER = 100
LARGEST_TOTAL_BYTES = 20_000_000


def small_ignored(worktree: Path, names: Sequence[str]) -> list[str]:
    """Of the ignored files and folders (these end with `/`) those that are small, as single files."""
    kept: list[str] = []
    total = 0
    for name in names:
        sizes = _folder(worktree, name) if name.endswith("/") else _file(worktree, name)
        if sizes and total + sum(sizes.values()) <= LARGEST_TOTAL_BYTES:
            kept += sizes
            total += sum(sizes.values())
    return kept


def _file(worktree: Path, name: str) -> dict[str, int]:
    try:
        found = os.lstat(worktree / name)
    except OSError:
        return {}
    plain = stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)
    return {name: found.st_size} if plain and found.st_size <= LARGEST_FILE_BYTES else {}


def _folder(worktree: Path, name: str) -> dict[str, int]:
    """All its files, or none when it is a large one."""
    sizes: dict[str, int] = {}
    for folder, _, files in os.walk(worktree / name):
        for file in files:
            path = str(Path(folder, file).relative_to(worktree))
            sizes |= _file(worktree, path) or {path: LARGEST_FOLDER_BYTES + 1}
            if len(sizes) > MOST_IN_FOLDER or sum(sizes.values()) > LARGEST_FOLDER_BYTES:
                return {}
    return sizes
