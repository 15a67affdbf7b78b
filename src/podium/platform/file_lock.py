"""Locks of files and folders. The kernel lets go of them however their holder ends."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from podium.platform.folders import make_private_folder
from podium.platform.safe_open import FOLDER_FLAGS, OpenOptions, open_or_create

_PAUSE_SECONDS = 0.01
"""Between two tries: the kernel tells nobody that a lock is free but who waits for it in a thread of his own."""


def take_file_lock(
    path: Path | str,
    folder: int | None = None,
    *,
    seconds: float = 0.0,
    **options: Unpack[OpenOptions],
) -> int:
    """Lock a file, made where it is missing, until the handle that this gives is closed or the process ends.

    Raises `BlockingIOError` when another holds it for longer than `seconds`, and as `open_or_create` does.
    """
    give_up_at = time.monotonic() + seconds
    while True:
        handle = open_or_create(path, folder, **options)
        try:
            _wait(handle, fcntl.LOCK_EX, give_up_at)
            if _is_at(handle, path, folder, follow=options.get("follow", False)):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # another was put in its place while we waited


@contextmanager
def file_lock(
    path: Path | str,
    folder: int | None = None,
    *,
    seconds: float = math.inf,
    **options: Unpack[OpenOptions],
) -> Iterator[int]:
    """Hold the lock of a file while open, and give its handle to read and write. Raises as `take_file_lock` does."""
    handle = take_file_lock(path, folder, seconds=seconds, **options)
    try:
        yield handle
    finally:
        os.close(handle)


async def take_file_lock_async(path: Path, *, seconds: float) -> int:
    """As `take_file_lock`. The event loop goes on meanwhile."""
    import asyncio  # late: not every command has a loop

    give_up_at = time.monotonic() + seconds
    while True:
        try:
            return take_file_lock(path)
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)


def take_folder_lock(folder: Path, *, shared: bool, seconds: float = 0.0) -> int:
    """Lock a folder that is there until the handle that this gives is closed, or the process ends.

    Raises `BlockingIOError` when others hold it for longer than `seconds`, and `OSError` where there is none. A link is not followed.
    """
    handle = os.open(folder, FOLDER_FLAGS)
    try:
        _wait(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, time.monotonic() + seconds)
    except BaseException:
        os.close(handle)
        raise
    return handle


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Make the folder where it is missing and keep other processes out meanwhile. Waits for its turn; raises `OSError`."""
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _wait(handle, fcntl.LOCK_EX, math.inf)
        yield
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Tell whether a process holds the lock of this file. False where there is none."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _is_taken(handle, fcntl.LOCK_EX)
    finally:
        os.close(handle)


def _wait(handle: int, kind: int, give_up_at: float) -> None:
    if give_up_at == math.inf:
        fcntl.flock(handle, kind)
        return
    while not _is_taken(handle, kind):
        if time.monotonic() >= give_up_at:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process holds its lock")
        time.sleep(_PAUSE_SECONDS)


def _is_taken(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(handle: int, path: Path | str, folder: int | None, *, follow: bool) -> bool:
    try:
        there = os.stat(path, dir_fd=folder, follow_symlinks=follow)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(handle), there)
