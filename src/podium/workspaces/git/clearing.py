"""Removing a folder with everything in it, whatever an agent left there.

An agent may leave folders nested deeper than any path or recursion reaches, folders without
permissions, and links that lead away. Each inner folder is therefore moved up to the top before
it is emptied, so that the depth is never more than one, and no link is ever followed.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podium.domain.errors import NotPossibleNow

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = (errno.ENOTEMPTY, errno.EEXIST)


def clear_away(folder: Path, again: str = "podium workspaces gc") -> None:
    """Remove the folder, or what a killed process left of it. One that is not there is no error.

    `again` is the command that goes on with it. Raises `NotPossibleNow` that names what could not be removed; asked again it goes on from there.
    """
    try:
        _clear(folder)
        folder.rmdir()
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise NotPossibleNow(f"{str(folder)!r} is no folder, so it is left as it is") from None
    except OSError as error:
        raise NotPossibleNow(
            f"{str(folder)!r} could not be removed wholly: {error.strerror} "
            f"({error.filename!r}); remove what is in the way, then say `{again}` again"
        ) from error


def open_up(name: Path | str, folder: int | None = None) -> None:
    """Give the owner all rights to a folder, or to read and write a file. Never to what a link leads to."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, 0o700, dir_fd=folder, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISLNK(mode):
            rights = 0o700 if stat.S_ISDIR(mode) else 0o600
            Path(f"/proc/self/fd/{handle}").chmod(stat.S_IMODE(mode) | rights)
    finally:
        os.close(handle)


def _clear(folder: Path) -> None:
    """Empty the folder. Inner folders that are not empty wait in it under names of their own."""
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise NotADirectoryError
    open_up(folder)
    top = os.open(folder, _FOLDER)
    names = _unused_names(top)
    waiting: list[str] = []
    try:
        _empty(top, top, names, waiting)
        while waiting:
            name = waiting.pop()
            with _entered(top, name) as inner:
                _empty(top, inner, names, waiting)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _empty(top: int, folder: int, names: Iterator[str], waiting: list[str]) -> None:
    for name in os.listdir(folder):
        if not _is_folder(folder, name):
            os.unlink(name, dir_fd=folder)
        elif not _removed_empty(folder, name):
            waiting.append(_moved_up(top, folder, name, names))


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _removed_empty(folder: int, name: str) -> bool:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno in _FULL:
            return False
        raise
    return True


def _moved_up(top: int, folder: int, name: str, names: Iterator[str]) -> str:
    # A folder is moved only by who may write in it, since its `..` changes.
    open_up(name, folder)
    if folder == top:
        return name
    new_name = next(names)
    os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=top)
    return new_name


@contextmanager
def _entered(top: int, name: str) -> Iterator[int]:
    handle = os.open(name, _FOLDER, dir_fd=top)
    try:
        yield handle
    finally:
        os.close(handle)


def _unused_names(top: int) -> Iterator[str]:
    """Names that nothing in the folder has, also not what an earlier, killed attempt moved there."""
    there = set(os.listdir(top))
    return (name for name in map("cleared-{}".format, itertools.count()) if name not in there)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder that nothing is left in."""
    with suppress(OSError):
        folder.rmdir()
