"""Folders that only this user may enter, and folders shipped with the package."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import podium

PRIVATE = 0o700


def make_private_folder(folder: Path) -> None:
    """Make the folder, and all above it that are missing, with mode 0700 whatever the umask is.

    One that is there stays as it is. `Path.mkdir` gives its mode to the last folder alone. Raises `OSError`.
    """
    try:
        folder.mkdir(mode=PRIVATE)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_private_folder(folder.parent)
        make_private_folder(folder)
    except OSError:
        # Not only where it exists: a read-only file system complains of that first.
        if not folder.is_dir():
            raise


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make the folder where it is missing and keep other processes out meanwhile. Waits for its turn; raises `OSError`."""
    make_private_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def hold_folder(folder: Path, *, alone: bool, seconds: float = 0.0) -> int:
    """Lock a folder that is there, shared or `alone`, until the handle that this gives is closed or the process ends.

    Raises `BlockingIOError` when others hold it for longer than `seconds`, and `OSError` where there is none. A link is not followed.
    """
    give_up_at = time.monotonic() + seconds
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        while True:
            try:
                fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                return handle
            except BlockingIOError:
                if time.monotonic() >= give_up_at:
                    raise
                time.sleep(0.02)
    except BaseException:
        os.close(handle)
        raise


def is_locked(path: Path) -> bool:
    """Tell whether a process holds the lock of this file. False where there is none."""
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def is_wide(folder: Path) -> bool:
    """Whether others may enter or list it. False where there is none."""
    try:
        return bool(stat.S_IMODE(folder.stat().st_mode) & ~PRIVATE)
    except OSError:
        return False


def tighten(folder: Path) -> None:
    """Take a folder of ours from all others. One that may not be changed stays as it is."""
    with suppress(OSError):
        if is_wide(folder) and folder.stat().st_uid == os.geteuid():
            folder.chmod(PRIVATE)


def shipped_folder(name: str) -> Path:
    """The folder with this name: in the package where Podium is installed, at the root of a checkout else."""
    package = Path(podium.__file__).parent
    installed = package / name
    return installed if installed.is_dir() else package.parents[1] / name
