"""A person who looks at what was done: git in his own checkout, in the worktree, and wherever it seems odd."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.integration.attacks.arena import Arena

_LOOKS = (("status",), ("log", "-1", "--stat"), ("diff",), ("diff", "--cached"))
_MAX_ODD_FOLDERS = 8


def look_around(arena: Arena) -> list[str]:
    """Whatever git says is fine; what it runs is not, nor that it never ends."""
    hung = []
    for folder in (arena.places.repository, *_folders(Path(arena.task.path))):
        try:
            for words in _LOOKS if folder.is_dir() else ():
                arena.users_git(*words, cwd=folder)
        except subprocess.TimeoutExpired:
            hung.append(f"the user's git hangs in {folder.name}")
    return hung


def _folders(worktree: Path) -> Iterator[Path]:
    yield worktree
    odd = (Path(folder) for folder, inner, names in os.walk(worktree)
           if folder != str(worktree) and {"HEAD", ".git"} & {*inner, *names})  # fmt: skip
    for _, folder in zip(range(_MAX_ODD_FOLDERS), odd, strict=False):
        yield folder
