"""What lies in a folder that a playbook works in: counted, and without following a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from podium.domain.errors import NotPossibleNow
from podium.domain.protected_paths import GIT_DIR, STATE_DIR, comparable

STATE = STATE_DIR
DOT_GIT = GIT_DIR


@dataclass(frozen=True)
class GroundLimits:
    """How much of a folder is kept or copied before a playbook works in it."""

    files: int = 50_000
    bytes: int = 1_000_000_000
    copied_files: int = 200_000
    """A copy has everything, also what a build made and git ignores."""
    copied_bytes: int = 4_000_000_000


@dataclass
class Seen:
    """Paths from the folder on, with `/`; bytes that are no text stay whole as surrogates."""

    files: dict[str, int] = field(default_factory=dict)
    """Permission bits of each."""
    links: set[str] = field(default_factory=set)
    folders: dict[str, int] = field(default_factory=dict)
    """Permission bits of each, the folder itself not among them; a folder comes before what is in it."""
    passed_over: set[str] = field(default_factory=set)
    """What was not looked into and is left alone."""
    left_out: list[str] = field(default_factory=list)
    """What of it somebody may miss, in words."""
    bytes: int = 0


@dataclass(frozen=True)
class Walk:
    """How to look through a folder."""

    most_files: int
    most_bytes: int
    never: Collection[str]
    """Names of what is passed over at any depth, in small letters."""
    own: tuple[int, int]
    """Device and inode of Podium's own folder for all this, should it lie within."""
    skipped: Collection[str] = ()
    """Paths that are passed over."""

    def through(self, root: Path) -> Seen:
        """Everything. Raises `NotPossibleNow` when it is more than may be, or the folder cannot be read."""
        seen = Seen()
        waiting = [""]
        while waiting:
            inner = waiting.pop()
            try:
                entries = _entries(root, inner)
            except OSError as error:
                if not inner:
                    raise NotPossibleNow(
                        f"the folder {str(root)!r} cannot be looked into: {error.strerror}"
                    ) from error
                self._miss(seen, inner.rstrip("/"), error)
                continue
            for entry in entries:
                path = inner + entry.name
                if self._take(seen, entry, path):
                    waiting.append(f"{path}/")
                self._check(seen, root)
        return seen

    def _take(self, seen: Seen, entry: os.DirEntry[str], path: str) -> bool:
        """Note what it is; whether it is a folder to look into."""
        if comparable(entry.name) in self.never or path in self.skipped:
            seen.passed_over.add(path)
            return False
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError as error:
            self._miss(seen, path, error)
            return False
        if stat.S_ISDIR(found.st_mode):
            return self._enter(seen, path, found)
        if stat.S_ISLNK(found.st_mode):
            seen.links.add(path)
        elif not stat.S_ISREG(found.st_mode):
            seen.passed_over.add(path)
        elif not os.access(entry.path, os.R_OK):
            self._miss(seen, path, PermissionError(0, "it may not be read"))
        else:
            seen.files[path] = stat.S_IMODE(found.st_mode) & 0o777
            seen.bytes += found.st_size
        return False

    def _enter(self, seen: Seen, path: str, found: os.stat_result) -> bool:
        if (found.st_dev, found.st_ino) == self.own:
            seen.passed_over.add(path)
            return False
        seen.folders[path] = stat.S_IMODE(found.st_mode) & 0o777
        return True

    def _miss(self, seen: Seen, path: str, error: OSError) -> None:
        seen.folders.pop(path, None)
        seen.passed_over.add(path)
        seen.left_out.append(f"{shown(path)[:200]!r}: {error.strerror}")

    def _check(self, seen: Seen, root: Path) -> None:
        count = len(seen.files) + len(seen.links) + len(seen.folders)
        if count > self.most_files:
            raise NotPossibleNow(
                f"there are more than {self.most_files} files and folders in {str(root)!r}"
            )
        if seen.bytes > self.most_bytes:
            raise NotPossibleNow(
                f"the files in {str(root)!r} have more than {self.most_bytes // 1_000_000} MB"
            )


def shown(path: str) -> str:
    """The path as text that can be written anywhere."""
    return os.fsencode(path).decode(errors="replace")


def identity_of(folder: Path) -> tuple[int, int]:
    """By which a folder is known under whatever name."""
    found = folder.stat()
    return found.st_dev, found.st_ino


def _entries(root: Path, inner: str) -> list[os.DirEntry[str]]:
    """Read at once: however deep the walk goes, no more than one folder is open."""
    with os.scandir(root / inner) as entries:
        return list(entries)
