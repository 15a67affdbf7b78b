"""Folder trees that an agent filled: walked at any depth, measured, moved and removed without following links.

An agent may leave folders nested deeper than any path or recursion reaches, folders without
permissions, and links that lead away. Each inner folder is therefore moved up to the top before
it is emptied, so that the depth is never more than one, and no link is ever followed.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from podium.core.errors import NotPossibleNow, PodiumError, WorkspaceTampered


def entries_within(*folders: Path) -> Iterator[os.DirEntry[str]]:
    """Yield everything in them at any depth. No link is followed; what cannot be looked into has nothing."""
    waiting = [os.fspath(folder) for folder in folders]
    while waiting:
        for entry in _entries(waiting.pop()):
            if _is_folder_entry(entry):
                waiting.append(entry.path)
            yield entry


def files_within(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Those that are no folders: files, links, pipes and the like."""
    return (entry for entry in entries_within(folder) if not _is_folder_entry(entry))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Read at once: however deep the walk goes, no more than one folder is open."""
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _is_folder_entry(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


_BLOCK_BYTES = 512


@dataclass
class FolderSize:
    """Size of some folders."""

    bytes: int = 0
    """Bytes on the disk; a file with several names counts once."""
    changed_seconds: float = 0.0
    """Since the epoch."""

    def changed_at(self, now: datetime, earliest: datetime) -> datetime:
        """The newest change. Whoever works in a folder sets its times, so they are held to what can be."""
        latest = min(self.changed_seconds, now.timestamp())
        return datetime.fromtimestamp(max(latest, earliest.timestamp()), UTC)


def measure(*folders: Path) -> FolderSize:
    """Look through the folders. What cannot be looked into counts as nothing."""
    size = FolderSize()
    inodes: set[tuple[int, int]] = set()
    for entry in entries_within(*folders):
        with suppress(OSError):
            _add(size, inodes, entry.stat(follow_symlinks=False))
    return size


def _add(size: FolderSize, inodes: set[tuple[int, int]], entry: os.stat_result) -> None:
    size.changed_seconds = max(size.changed_seconds, entry.st_mtime)
    if entry.st_nlink > 1:
        identity = (entry.st_dev, entry.st_ino)
        if identity in inodes:
            return
        inodes.add(identity)
    size.bytes += entry.st_blocks * _BLOCK_BYTES


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
        raise NotPossibleNow(f"{str(folder)!r} is not a folder, so it was not removed") from None
    except OSError as error:
        raise NotPossibleNow(
            f"{str(folder)!r} could not be removed completely: {error.strerror} "
            f"({error.filename!r}); remove what blocks it, then run `{again}` again"
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


_CARRIED_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_DEPTH = 100
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
        with _opened(os.open(source.parent, _CARRIED_FOLDER)) as folder:
            _copy(folder, source.name, target, _MAX_DEPTH)
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
        f"{str(source)!r} is a repository planted in the worktree, and it cannot be moved away "
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
        raise OSError(errno.ELOOP, "its folders are nested too deeply")
    target.mkdir(mode=0o700)
    with _opened(_open(folder, name, _CARRIED_FOLDER)) as inner:
        for entry in os.listdir(inner):  # noqa: PTH208 — a descriptor
            _copy(inner, entry, target / entry, deeper - 1)


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
