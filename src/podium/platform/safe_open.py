"""Files below a root, reached one folder handle at a time so that no swapped symlink leads out.

Checking a path and then opening it by name loses against somebody who swaps a folder for a
symlink in between. Here every name is opened relative to the handle of the folder before it, and
a symlink anywhere on the way is an error. The paths handed in are the real ones that were judged,
so a symlink met here is always one that appeared later.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from podium.core.errors import ToolBroke

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: opening a named pipe would wait for its other end.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SWAPPED = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


def read_beneath(root: Path, relative: str, limit_bytes: int, *, alone: bool = False) -> bytes:
    """The whole content of a plain file. Raises `ToolBroke` when it is none, or too large.

    `alone`: also when it has a second name, by which it may belong to a place that is closed.
    """
    name = _leaf(relative)
    with _folder(root, relative, create=False) as folder, _words_for(relative):
        handle = os.open(name, _READ, dir_fd=folder)
        try:
            found = os.fstat(handle)
            _must_be_plain(found, relative)
            if alone:
                must_be_alone(found, relative)
            with open(handle, "rb", closefd=False) as file:
                content = file.read(limit_bytes + 1)
        finally:
            os.close(handle)
    if len(content) > limit_bytes:
        raise ToolBroke(f"{relative!r} is larger than {limit_bytes} bytes")
    return content


def find_beneath(
    root: Path, relative: str, limit_bytes: int, *, alone: bool = False
) -> bytes | None:
    """As `read_beneath`; None when there is no such file."""
    try:
        return read_beneath(root, relative, limit_bytes, alone=alone)
    except FileNotFoundError:
        return None


def write_beneath(
    root: Path, relative: str, content: bytes, call_key: str, *, mode: int | None = None
) -> None:
    """Replace or create a file in one step, with the folders above it. Durable on return.

    Permission bits of a file that was there are kept; a new one has those of `mode`, if given. A second try after a crash, under the same
    call key, also clears away what the first left behind.
    """
    name = _leaf(relative)
    draft = draft_name(call_key)
    with _folder(root, relative, create=True) as folder, _words_for(relative):
        present = _mode_of(folder, name, relative)
        mode = mode if present is None else present
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        try:
            _write_draft(folder, draft, content, mode)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            raise
        os.fsync(folder)


def draft_name(call_key: str) -> str:
    """What a file is called until it is complete. The same at every try of one call."""
    return f".podium-{hashlib.sha256(call_key.encode()).hexdigest()[:16]}.tmp"


def remove_beneath(root: Path, relative: str) -> None:
    """Remove a plain file. Raises `FileNotFoundError` when it is not there."""
    name = _leaf(relative)
    with _folder(root, relative, create=False) as folder, _words_for(relative):
        _must_be_plain(os.stat(name, dir_fd=folder, follow_symlinks=False), relative)
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)


def look_beneath(root: Path, relative: str) -> os.stat_result | None:
    """What stands there, a symlink as itself. None when nothing does."""
    name = _leaf(relative)
    try:
        with _folder(root, relative, create=False) as folder, _words_for(relative):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def make_folder_beneath(root: Path, relative: str, mode: int = 0o777) -> None:
    """Make a folder with those above it. Done before, it is done. Durable on return."""
    name = _leaf(relative)
    with _folder(root, relative, create=True) as folder, _words_for(relative):
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=folder)
        os.close(os.open(name, _FOLDER, dir_fd=folder))
        os.fsync(folder)


def rename_beneath(root: Path, relative: str, to: str) -> None:
    """Give a file or folder another place, in one step. Durable on return.

    A file that stands at the new place is replaced: look before.
    """
    with (
        _folder(root, relative, create=False) as source,
        _folder(root, to, create=True) as target,
        _words_for(relative),
    ):
        os.rename(_leaf(relative), _leaf(to), src_dir_fd=source, dst_dir_fd=target)
        os.fsync(target)
        os.fsync(source)


def move_beneath(root: Path, relative: str, to: str) -> None:
    """Give a plain file another place, where nothing stands. Durable on return.

    Raises `FileExistsError` when something does. After a crash in between the file has both
    names; the same again ends it.
    """
    name, new = _leaf(relative), _leaf(to)
    with (
        _folder(root, relative, create=False) as source,
        _folder(root, to, create=True) as target,
        _words_for(to),
    ):
        if not _same_file(source, name, target, new):
            # A rename would replace what somebody puts there in this moment; a link does not.
            os.link(name, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            os.fsync(target)
        os.unlink(name, dir_fd=source)
        os.fsync(source)


def _same_file(source: int, name: str, target: int, new: str) -> bool:
    here = os.stat(name, dir_fd=source, follow_symlinks=False)
    try:
        there = os.stat(new, dir_fd=target, follow_symlinks=False)
    except FileNotFoundError:
        return False
    # With a single name it is one place spelt in two ways, and unlinking would lose the file.
    return os.path.samestat(here, there) and here.st_nlink > 1


def _write_draft(folder: int, draft: str, content: bytes, mode: int | None) -> None:
    handle = os.open(draft, _CREATE, 0o666, dir_fd=folder)
    with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
        if mode is not None:
            os.fchmod(handle, mode)
        file.write(content)
        file.flush()
        os.fsync(handle)


def _mode_of(folder: int, name: str, relative: str) -> int | None:
    """Permission bits of the file that will be replaced; None when there is none."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _must_be_plain(found, relative)
    return stat.S_IMODE(found.st_mode) & 0o777


@contextlib.contextmanager
def _folder(root: Path, relative: str, *, create: bool) -> Iterator[int]:
    """Handle of the folder that holds the file."""
    handle = os.open(root, _FOLDER)
    try:
        for part in PurePosixPath(relative).parts[:-1]:
            with _words_for(relative):
                deeper = _enter(handle, part, create=create)
            os.close(handle)
            handle = deeper
        yield handle
    finally:
        os.close(handle)


def _enter(folder: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _leaf(relative: str) -> str:
    path = PurePosixPath(relative)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise ToolBroke(f"{relative!r} is no file inside the workspace")
    return path.name


def _must_be_plain(found: os.stat_result, relative: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolBroke(f"{relative!r} is a folder; name a file")
    if not stat.S_ISREG(found.st_mode):
        raise ToolBroke(f"{relative!r} is not a plain file")


def must_be_alone(found: os.stat_result, relative: str) -> None:
    """Raise `ToolBroke` for a file that has a second name."""
    if found.st_nlink > 1:
        raise ToolBroke(
            f"{relative!r} is a hard link: the same file has {found.st_nlink} names, and where the "
            "others lie cannot be told; make it a file of its own first"
        )


@contextlib.contextmanager
def _words_for(relative: str) -> Iterator[None]:
    """Says which path an error is about, and what a symlink in the way means."""
    try:
        yield
    except OSError as error:
        if error.errno in _SWAPPED:
            raise ToolBroke(
                f"{relative!r} has a symbolic link, or a file in place of a folder, on its way"
            ) from error
        raise type(error)(error.errno, error.strerror, relative) from error
