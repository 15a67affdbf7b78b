"""What no program needs: keys, histories, records, and the folders that people work in.

Asked of real places, and of folders by what they are as well as by how they are called: where capitals do not
count, or a folder is mounted twice, one place has many names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from podium.domain.protected_paths import GIT_DIR, STATE_DIR, comparable

_HISTORIES = frozenset({GIT_DIR, ".hg", ".svn", ".jj", ".bzr", STATE_DIR})
_KEYS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", "keyrings"})
_OF_WORK = _HISTORIES | {"podium.yaml"}
_OF_HOMES = frozenset({".config", ".bashrc", ".zshrc", ".profile", ".netrc", ".git-credentials"})
_BARE = frozenset({"head", "objects", "refs"})
"""What a repository without a checkout has at its top."""


class Places:
    """Some places, and what they hold and lie in."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._reals = [real_place(path) for path in paths if str(path)]
        self._marks = {mark for path in self._reals if (mark := _mark(path))}
        above = {folder for path in self._reals for folder in (path, *path.parents)}
        self._above = above, {mark for path in above if (mark := _mark(path))}
        # Most that is asked for lies in few folders.
        self.are_at = cache(self._are_at)

    def _are_at(self, real: Path) -> bool:
        """Whether this is one of the places."""
        return real in self._reals or _mark(real) in self._marks

    def hold(self, real: Path) -> bool:
        """Whether this is one of the places, or lies in one."""
        return bool(self._reals) and any(map(self.are_at, (real, *real.parents)))

    def lie_in(self, real: Path) -> bool:
        """Whether this is one of the places, or holds one."""
        paths, marks = self._above
        return real in paths or _mark(real) in marks


class Workplaces:
    """Tells folders that people work in from those that things are installed in."""

    def __init__(self, project: str, home: Path) -> None:
        # A home may be kept under version control, or be the project: what lies in it is judged by itself.
        self._beyond = {home, *home.parents}
        self._project = Places([project] if real_place(project) not in self._beyond else [])
        self._names = cache(_names)

    def hold(self, real: Path) -> bool:
        """Whether this lies in the project, or in any other checkout."""
        if self._project.hold(real):
            return True
        above = (folder for folder in (real, *real.parents) if folder not in self._beyond)
        return any(self._is_checkout(folder) for folder in above)

    def lie_in(self, real: Path) -> bool:
        """Whether the project lies in this, or some checkout right below it."""
        if self._project.lie_in(real):
            return True
        return any(self._is_checkout(folder) for folder in _folders_in(real))

    def are_marked(self, real: Path) -> bool:
        """Whether this folder itself holds what a person keeps for himself."""
        names = self._names(real)
        marks = _OF_WORK | _OF_HOMES | _KEYS
        return bool(names & marks) or any(name.startswith(".env") for name in names)

    def _is_checkout(self, folder: Path) -> bool:
        names = self._names(folder)
        return bool(names & _OF_WORK) or names >= _BARE


def is_guarded(real: Path) -> bool:
    """Whether this lies in a folder of keys, of a history or of a record."""
    return any(comparable(part) in _HISTORIES | _KEYS for part in real.parts)


def real_place(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(path.name.casefold() for path in folder.iterdir())
    except OSError:
        return frozenset()


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
