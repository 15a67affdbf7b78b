"""Files below a root that other programs write in too: reached by folder handle, locked, replaced atomically."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path, PurePosixPath

from podium.core.errors import LockHeld, NotPossibleNow
from podium.platform.atomic_write import atomic_create_at, atomic_write_at, sync
from podium.platform.file_lock import take_file_lock
from podium.platform.safe_open import UnusableFile, open_folder, read_start

_NOTE_BYTES = 200


@contextmanager
def opened_folder(
    root: Path, relative: str, *, make: bool = False, mode: int = 0o777
) -> Iterator[int]:
    """Handle of a folder below the root, which may itself be a link; with `make` it is made where it is not there.

    Raises `FileNotFoundError` when there is none, and `NotPossibleNow` when it cannot be reached.
    """
    with ExitStack() as opened:
        with explain_errors(relative):
            folder = opened.enter_context(
                open_folder(root, relative, make=make, mode=mode, follow_root=True)
            )
        yield folder


def read_plain(folder: int, name: str, limit_bytes: int) -> bytes:
    """The content of a plain file that has no second name. One that is too large comes with one byte more.

    Raises `NotPossibleNow` for what is no such file.
    """
    with explain_errors(name):
        return read_start(name, limit_bytes + 1, folder, single_name=True)


def replace_file(folder: int, name: str, content: bytes, *, mode: int = 0o666) -> None:
    """Put a file there in one step. Durable on return; readers see the old one or the new one."""
    with explain_errors(name):
        atomic_write_at(folder, name, content, mode=mode)


@contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Turn system errors into messages that name this path. A missing file stays `FileNotFoundError`."""
    try:
        yield
    except FileNotFoundError:
        raise
    except UnusableFile as error:
        raise NotPossibleNow(str(error)) from error
    except OSError as error:
        raise NotPossibleNow(
            f"{path!r} cannot be used: {error.strerror}; check its permissions and the free disk space"
        ) from error


@contextmanager
def exclusive_lock(folder: int, name: str, *, what: str, since: datetime) -> Iterator[None]:
    """Hold the lock while open. Raises `LockHeld`, with pid and time, when another process has it.

    `what` says what is held, as in "the sense loop of '/srv/x'".
    """
    with explain_errors(name):
        try:
            handle = take_file_lock(name, folder, single_name=True)
        except BlockingIOError:
            raise LockHeld(
                f"{what} is locked by {_holder(folder, name)}; wait for it to end, or stop it"
            ) from None
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "since": _short(since)}).encode(), 0)
        yield
    finally:
        os.close(handle)


@contextmanager
def opened_with_lock(
    folder: int, name: str, *, mode: int = 0o600, patience_seconds: float = 10.0
) -> Iterator[int]:
    """The file, open to be read and added to, made where it is not there, and held by this process alone.

    Raises `NotPossibleNow` when somebody keeps it for longer than `patience_seconds`.
    """
    with explain_errors(name):
        try:
            handle = take_file_lock(
                name,
                folder,
                seconds=patience_seconds,
                mode=mode,
                flags=os.O_APPEND,
                single_name=True,
            )
        except BlockingIOError:
            raise NotPossibleNow(
                f"{name!r} is locked by another process; stop that process"
            ) from None
    try:
        yield handle
    finally:
        os.close(handle)


def _holder(folder: int, name: str) -> str:
    """Return the process that holds the lock, as far as the file says: the holder may be writing just now."""
    try:
        note = json.loads(read_start(name, _NOTE_BYTES, folder))
        return f"process {int(note['pid'])} since {datetime.fromisoformat(note['since']):%Y-%m-%dT%H:%M:%SZ}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def append_whole(handle: int, data: bytes) -> None:
    """Add to a locked file in one write: all of it or, where the disk is full, nothing.

    A line that a crash cut off before it is ended first, so that none is glued to it.
    """
    size = os.fstat(handle).st_size
    torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
    data = b"\n" + data if torn else data
    try:
        if os.write(handle, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(handle, size)
        raise


def _short(timestamp: datetime) -> str:
    return timestamp.replace(microsecond=0).isoformat()


_MAX_BYTES = 1_000_000
_MAX_BACKUPS = 100


def make_folder(base: Path, relative: str) -> bool:
    """Make it with those above it. False: it was there already."""
    try:
        with opened_folder(base, relative):
            return False
    except FileNotFoundError:
        with opened_folder(base, relative, make=True):
            return True


def create_file(base: Path, relative: str, content: bytes, *, mode: int = 0o644) -> bool:
    """Put a file there with the folders above it. False: a file has this name, and stays as it is.

    Raises `NotPossibleNow` for a folder in its place, and for links on the way.
    """
    with _above(base, relative, make=True) as (folder, name), explain_errors(relative):
        try:
            atomic_create_at(folder, name, content, mode=mode)
        except FileExistsError:
            _must_not_be_a_folder(folder, name, relative)
            return False
    return True


def install_file(
    base: Path,
    relative: str,
    content: bytes,
    *,
    mode: int = 0o644,
    is_ours: Callable[[bytes], bool] = lambda _: False,
) -> str:
    """Replace a file; the old one is kept as a backup unless `is_ours`.

    Gives the path of what was kept, if anything. The same content again changes nothing. Raises
    `NotPossibleNow` for what is no plain file.
    """
    if create_file(base, relative, content, mode=mode):
        return ""
    with _above(base, relative) as (folder, name):
        before = _content(folder, name, relative)
        if before == content:
            return ""
        backup = "" if is_ours(before) else _backup_of(base, relative, before, mode)
        replace_file(folder, name, content, mode=mode)
    return backup


def read_installed(base: Path, relative: str) -> bytes | None:
    """Read the file; None if there is none. Raises `NotPossibleNow` for anything but a plain file."""
    if not base.is_dir():
        return None
    try:
        with _above(base, relative) as (folder, name):
            return _content(folder, name, relative)
    except FileNotFoundError:
        return None


def remove_file(base: Path, relative: str) -> None:
    """Remove a file. One that is not there is no error."""
    with (
        suppress(FileNotFoundError),
        _above(base, relative) as (folder, name),
        explain_errors(relative),
    ):
        os.unlink(name, dir_fd=folder)
        sync(folder)


@contextmanager
def _above(base: Path, relative: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Handle of the folder that holds the file, and its name there."""
    path = PurePosixPath(relative)
    with opened_folder(base, str(path.parent), make=make) as folder:
        yield folder, path.name


def _content(folder: int, name: str, relative: str) -> bytes:
    with explain_errors(relative):
        content = read_plain(folder, name, _MAX_BYTES)
    if len(content) > _MAX_BYTES:
        raise NotPossibleNow(f"{relative!r} is too large to be a file of Podium; move it away")
    return content


def _backup_of(base: Path, relative: str, before: bytes, mode: int) -> str:
    """A copy of what is there, under a name that nothing else has."""
    for count in range(1, _MAX_BACKUPS + 1):
        backup = f"{relative}.bak{count if count > 1 else ''}"
        if create_file(base, backup, before, mode=mode) or read_installed(base, backup) == before:
            return backup
    raise NotPossibleNow(f"{relative!r} has {_MAX_BACKUPS} backups; move them away first")


def _must_not_be_a_folder(folder: int, name: str, relative: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise NotPossibleNow(f"{relative!r} is a folder where a file belongs; move it away first")
