"""Repositories that many tests start from: made once in each process, then copied."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

_MADE: dict[tuple[str, ...], Path] = {}


def copy_repository(folder: Path, name: tuple[str, ...], make: Callable[[Path], None]) -> None:
    """Let `folder` be a repository as `make` makes it, which is done for the first of this name alone."""
    if name not in _MADE:
        above = tempfile.mkdtemp(prefix="podium-tests-")
        atexit.register(shutil.rmtree, above, ignore_errors=True)
        template = Path(above, "repository")
        template.mkdir()
        make(template)
        _MADE[name] = template
    shutil.copytree(_MADE[name], folder, symlinks=True, dirs_exist_ok=True)
    if (folder / ".git/index").exists():
        # The index knows files by their inodes; without this the first `git status` would change it.
        subprocess.run(["git", "update-index", "-q", "--refresh"], cwd=folder, check=True)
