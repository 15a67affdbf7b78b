"""Taking away what an agent made: whole, also to another file system, and following no link."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.domain.errors import PodiumError, WorkspaceTampered
from podium.workspaces.git.clearing import clear_away, open_up

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DEEPEST = 100
"""Folders within folders; nothing that anybody works with is deeper."""


def carry(source: Path, target: Path) -> None:
    """Move a file, link or folder to a name that is free. Raises `WorkspaceTampered` when it cannot be.

    Where it has to be copied, pipes and the like are left out: there is nothing in them.
    """
    try:
        _rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_over(source, target)


def _rename(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except PermissionError:
        # A folder is moved only by who may write in it, and in the one that it lies in.
        open_up(source.parent)
        open_up(source)
        source.rename(target)


def _copy_over(source: Path, target: Path) -> None:
    try:
        with _opened(os.open(source.parent, _FOLDER)) as folder:
            _copy(folder, source.name, target, _DEEPEST)
    except (OSError, PodiumError) as error:
        if os.path.lexists(target):
            _drop(target)
        raise _cannot_move(source, error) from error
    try:
        _drop(source)
    except (OSError, PodiumError) as error:
        raise _cannot_move(source, error) from error


def _cannot_move(source: Path, error: Exception) -> WorkspaceTampered:
    return WorkspaceTampered(
        f"{str(source)!r} is a repository that was planted in the worktree, and it cannot be moved away "
        f"({error}); remove it before anybody runs git there"
    )


def _copy(folder: int, name: str, target: Path, deeper: int) -> None:
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        target.symlink_to(os.readlink(name, dir_fd=folder))
    elif stat.S_ISDIR(mode):
        _copy_folder(folder, name, target, deeper)
    elif stat.S_ISREG(mode):
        _copy_file(folder, name, target)


def _copy_folder(folder: int, name: str, target: Path, deeper: int) -> None:
    if not deeper:
        raise OSError(errno.ELOOP, "folders lie too deep in it")
    target.mkdir(mode=0o700)
    with _opened(_open(folder, name, _FOLDER)) as inner:
        for each in os.listdir(inner):  # noqa: PTH208 — a descriptor
            _copy(inner, each, target / each, deeper - 1)


def _copy_file(folder: int, name: str, target: Path) -> None:
    handle = _open(folder, name, _FILE)
    with os.fdopen(handle, "rb") as source, target.open("xb") as copy:
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            shutil.copyfileobj(source, copy)
        os.fchmod(copy.fileno(), mode & 0o100 | 0o600)


def _open(folder: int, name: str, flags: int) -> int:
    """Also when its owner had taken the right to read it from himself."""
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:
        open_up(name, folder)
        return os.open(name, flags, dir_fd=folder)


@contextmanager
def _opened(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


def _drop(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        clear_away(path)
    else:
        path.unlink()
