"""Disk space kept back, so that the end of a run can be recorded when the disk is full."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from podium.core.errors import NO_SPACE
from podium.platform.safe_open import open_or_create, open_plain

RESERVE_NAME = "reserve"
RESERVE_BYTES = 2 * 1024 * 1024
"""About 500 pages of SQLite's log: more than the end of a run and its answer take."""
SLICE_BYTES = 128 * 1024
LAST_BYTES = 512 * 1024
"""Not given to ordinary writes, which a tree that fills the disk may outrun: for ends of runs alone."""
LOOK_SECONDS = 0.5
"""Seconds for which a full disk is taken to be still full."""


class DiskReserve:
    """A file of nothing that is shortened when the disk is full, and made whole when there is room again.

    Processes that share the folder share it. Every method may be called from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RESERVE_NAME
        self._lock = threading.Lock()
        self._whole = True
        """Cleared by the first release; nothing is looked at before that."""
        self._looked = 0.0

    def fill(self) -> None:
        """Make it as large as it should be, and on a small disk half of what is free."""
        with self._lock:
            self._whole = self._is_filled()

    def is_whole(self) -> bool:
        """False once it had to be used, or could not be made, and while there is no room to make it."""
        if self._whole:
            return True
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= LOOK_SECONDS:
                self._looked = now
                self._whole = self._is_filled()
            return self._whole

    def release(self, *, last: bool = False) -> bool:
        """Free some space; with `last` also what is kept for ends. False when none is left to free."""
        with self._lock:
            self._whole = False
            self._looked = time.monotonic()
            size = _size_of(self._path)
            least = 0 if last else LAST_BYTES
            if size <= least:
                return False
            return _shorten(self._path, max(least, size - SLICE_BYTES))

    def _is_filled(self) -> bool:
        size = _size_of(self._path)
        if size >= RESERVE_BYTES:
            return True
        try:
            target_bytes = min(RESERVE_BYTES, (size + free_bytes(self._path.parent)) // 2)
            if target_bytes < size or target_bytes <= LAST_BYTES:
                return size > LAST_BYTES
            _allocate(self._path, target_bytes)
        except OSError as error:
            # Where it cannot be made for another reason, nobody is kept from working.
            return error.errno not in NO_SPACE
        return True


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write in the folder's file system."""
    about = os.statvfs(folder)
    if not about.f_blocks:
        return sys.maxsize  # it does not say
    return about.f_bavail * about.f_frsize


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _shorten(path: Path, size: int) -> bool:
    """Cut the file down. False where it cannot be done, or the file is a link to something else."""
    try:
        handle = open_plain(path, single_name=True, flags=os.O_RDWR)
    except OSError:
        return False
    try:
        os.ftruncate(handle, size)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _allocate(path: Path, size: int) -> None:
    handle = open_or_create(path)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:  # macOS
            os.pwrite(handle, bytes(size), 0)
    finally:
        os.close(handle)
