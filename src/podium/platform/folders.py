"""Folders that only this user may enter, and folders shipped with the package."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
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


def is_wide(folder: Path) -> bool:
    """Tell whether others may enter or list it. False where there is none."""
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
