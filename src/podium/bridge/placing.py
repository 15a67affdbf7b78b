"""Putting files where people keep theirs: whole or not at all, and nothing of theirs is lost."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from podium.bridge.folders import opened_folder, read_plain, replace_file, saying
from podium.domain.errors import NotPossibleNow

_MOST_BYTES = 1_000_000
_MOST_BACKUPS = 100


def make_folder(base: Path, relative: str) -> bool:
    """Make it with those above it. False: it was there already."""
    try:
        with opened_folder(base, relative):
            return False
    except FileNotFoundError:
        with opened_folder(base, relative, make=True):
            return True


def place_new(base: Path, relative: str, content: bytes, *, mode: int = 0o644) -> bool:
    """Put a file there with the folders above it. False: a file has this name, and stays as it is.

    Raises `NotPossibleNow` for a folder in its place, and for links on the way.
    """
    with _above(base, relative, make=True) as (folder, name), saying(relative):
        draft = f".{name}.{secrets.token_hex(4)}.tmp"
        replace_file(folder, draft, content, mode=mode)
        try:
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            _must_not_be_a_folder(folder, name, relative)
            return False
        finally:
            os.unlink(draft, dir_fd=folder)
        os.fsync(folder)
    return True


def place_over(
    base: Path,
    relative: str,
    content: bytes,
    *,
    mode: int = 0o644,
    is_ours: Callable[[bytes], bool] = lambda _: False,
) -> str:
    """Put a file in place of the one that is there, which is kept beside it unless it is ours.

    Gives the path of what was kept, if anything. The same content again changes nothing. Raises
    `NotPossibleNow` for what is no plain file.
    """
    if place_new(base, relative, content, mode=mode):
        return ""
    with _above(base, relative) as (folder, name):
        before = _content(folder, name, relative)
        if before == content:
            return ""
        backup = "" if is_ours(before) else _kept_beside(base, relative, before, mode)
        replace_file(folder, name, content, mode=mode)
    return backup


def placed(base: Path, relative: str) -> bytes | None:
    """What the file holds; None when there is none. Raises `NotPossibleNow` for what is no plain file."""
    if not base.is_dir():
        return None
    try:
        with _above(base, relative) as (folder, name):
            return _content(folder, name, relative)
    except FileNotFoundError:
        return None


def take_away(base: Path, relative: str) -> None:
    """Remove a file. One that is not there is no error."""
    with suppress(FileNotFoundError), _above(base, relative) as (folder, name), saying(relative):
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)


@contextmanager
def _above(base: Path, relative: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Handle of the folder that holds the file, and its name there."""
    path = PurePosixPath(relative)
    with opened_folder(base, str(path.parent), make=make) as folder:
        yield folder, path.name


def _content(folder: int, name: str, relative: str) -> bytes:
    with saying(relative):
        content = read_plain(folder, name, _MOST_BYTES)
    if len(content) > _MOST_BYTES:
        raise NotPossibleNow(
            f"{relative!r} is larger than anything that belongs there; move it away"
        )
    return content


def _kept_beside(base: Path, relative: str, before: bytes, mode: int) -> str:
    """A copy of what is there, under a name that nothing else has."""
    for count in range(1, _MOST_BACKUPS + 1):
        backup = f"{relative}.bak{count if count > 1 else ''}"
        if place_new(base, backup, before, mode=mode) or placed(base, backup) == before:
            return backup
    raise NotPossibleNow(f"{relative!r} has {_MOST_BACKUPS} backups; move them away first")


def _must_not_be_a_folder(folder: int, name: str, relative: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise NotPossibleNow(f"{relative!r} is a folder where a file belongs; move it away first")
