"""Putting a folder back to what it was, by touching only what changed since."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

_MAX_CHANGES = 60
"""With more of them it is quicker to copy everything."""

_Facts = tuple[int, ...]


class Template:
    """A folder kept aside, and its copy that others change.

    What changed is known by inode and time of the inode's change, which nobody can set.
    """

    def __init__(self, kept: Path, copy: Path) -> None:
        self._kept = kept
        self._copy = copy
        self._facts: dict[str, _Facts] = {}

    def put_back(self) -> None:
        """Make the copy what the template is. Where it stands is always the same."""
        now: dict[str, _Facts] = {}
        with suppress(OSError):  # not there, not to be read, or too deep: it is copied anew
            now = _look(str(self._copy)) if self._facts else {}
        changed = [
            path
            for path in self._facts.keys() | now.keys()
            if self._facts.get(path) != now.get(path)
        ]
        folders = any(stat.S_ISDIR(self._facts[path][0]) for path in changed if path in self._facts)
        if not now or folders or len(changed) > _MAX_CHANGES:
            self._copy_all()
            return
        try:
            self._mend(changed)
        except (
            OSError,
            subprocess.CalledProcessError,
        ):  # folders that are closed, even to their owner
            self._copy_all()

    def _mend(self, changed: list[str]) -> None:
        for path in sorted(changed, reverse=True):
            _remove(self._copy / path)
        for path in sorted(changed):
            if path in self._facts:
                self._facts[path] = self._copy_one(path)

    def _copy_all(self) -> None:
        remove_tree(self._copy)
        subprocess.run(["cp", "-a", "--reflink=auto", str(self._kept), str(self._copy)], check=True)
        self._facts = _look(str(self._copy))

    def _copy_one(self, path: str) -> _Facts:
        target = self._copy / path
        shutil.copy2(self._kept / path, target, follow_symlinks=False)
        return _facts(os.lstat(target))


def _look(root: str) -> dict[str, _Facts]:
    found: dict[str, _Facts] = {}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                found[path] = _facts(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
    return found


def _facts(status: os.stat_result) -> _Facts:
    """Of folders without times: files come and go in them."""
    plain = (status.st_mode, status.st_uid, status.st_gid, status.st_ino)
    return plain if stat.S_ISDIR(status.st_mode) else (*plain, status.st_nlink, status.st_ctime_ns)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    words = ["rm", "-rf", str(path)]
    if path.exists() and subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode:
        subprocess.run(["chmod", "-R", "u+rwX", str(path)], check=False)
        subprocess.run(words, stderr=subprocess.DEVNULL, check=True)
