"""Files of lines that only grow, are turned over when they are full, and never hold half a line."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path, PurePosixPath

from podium.bridge.folders import opened_folder, saying
from podium.bridge.locking import append_whole, opened_with_lock

KEPT = 5
"""How many old ones there are beside the newest: `.1` is the youngest."""
# A line takes microseconds; whoever keeps the file for longer is no writer of lines.
_PATIENCE_SECONDS = 0.25


class LineFile:
    """One file of lines beneath a root. Several processes may add to it at the same time."""

    def __init__(self, root: Path, relative: str, *, limit_bytes: int, mode: int = 0o644) -> None:
        self._root = root
        self._folder = str(PurePosixPath(relative).parent)
        self._name = PurePosixPath(relative).name
        self._limit_bytes = limit_bytes
        self._mode = mode

    def add(self, line: str) -> None:
        """Add one line, whole or not at all. Raises `NotPossibleNow` when it cannot be written."""
        data = f"{line}\n".encode(errors="backslashreplace")
        with opened_folder(self._root, self._folder, make=True) as folder:
            while not self._added(folder, data):
                pass

    def _added(self, folder: int, data: bytes) -> bool:
        """False: the file was full, and is turned over now."""
        with opened_with_lock(folder, self._name, mode=self._mode, patience_seconds=_PATIENCE_SECONDS) as file:  # fmt: skip
            size = os.fstat(file).st_size
            if size and size + len(data) > self._limit_bytes:
                self._turn_over(folder)
                return False
            with saying(self._name):
                append_whole(file, data)
            return True

    def _turn_over(self, folder: int) -> None:
        names = [self._name, *(f"{self._name}.{number}" for number in range(1, KEPT + 1))]
        with saying(self._name):
            for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
                with suppress(FileNotFoundError):
                    os.rename(newer, older, src_dir_fd=folder, dst_dir_fd=folder)
