"""Folders that only this user may enter."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
