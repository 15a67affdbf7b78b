"""Files below a root that other programs write in too: reached by folder handle, locked, replaced atomically."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path, PurePosixPath

from podium.core.errors import LockHeld, NotPossibleNow

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: opening a named pipe would wait for its other end.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


@contextlib.contextmanager
def opened_folder(
    root: Path, relative: str, *, make: bool = False, mode: int = 0o777
) -> Iterator[int]:
    """Handle of a folder beneath the root; with `make` it is made where it is not there.

    Raises `FileNotFoundError` when there is none, and `NotPossibleNow` when it cannot be reached.
    """
    handle = _root(root)
    try:
        with saying(relative):
            for part in _parts(relative):
                deeper = _enter(handle, part, make=make, mode=mode)
                os.close(handle)
                handle = deeper
        yield handle
    finally:
        os.close(handle)


def read_plain(folder: int, name: str, limit_bytes: int) -> bytes:
    """The content of a plain file that has no second name. One that is too large comes with one byte more.

    Raises `NotPossibleNow` for what is no such file.
    """
    with saying(name):
        handle = os.open(name, _READ, dir_fd=folder)
        with open(handle, "rb") as file:  # noqa: PTH123 - a handle, not a path
            if fault := why_not_plain(os.fstat(handle)):
                raise NotPossibleNow(f"{name!r} {fault}")
            return file.read(limit_bytes + 1)


def why_not_plain(found: os.stat_result) -> str:
    """What keeps this from being a plain file of its own, in words; nothing if it is one."""
    if stat.S_ISLNK(found.st_mode):
        return "is a symbolic link; put the file itself there"
    if stat.S_ISDIR(found.st_mode):
        return "is a folder in place of a file"
    if not stat.S_ISREG(found.st_mode):
        return "is not a plain file"
    # What is changed under the other name would change here too, after it was judged.
    return "has a second name (a hard link); put a copy there" if found.st_nlink != 1 else ""


def replace_file(folder: int, name: str, content: bytes, *, mode: int = 0o666) -> None:
    """Put a file there in one step. Durable on return; readers see the old one or the new one."""
    draft = f".{name}.{secrets.token_hex(4)}.tmp"
    with saying(name):
        try:
            handle = os.open(draft, _CREATE, mode, dir_fd=folder)
            with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
                file.write(content)
                file.flush()
                os.fsync(handle)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            raise
        os.fsync(folder)


@contextlib.contextmanager
def saying(place: str) -> Iterator[None]:
    """What the system refuses, as a sentence about this place. A missing file stays `FileNotFoundError`."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            raise NotPossibleNow(
                f"{place!r} has a symbolic link, or a file in place of a folder, on its way; "
                "put a real folder there"
            ) from error
        raise NotPossibleNow(
            f"{place!r} cannot be used: {error.strerror}; look at its rights and at the space on its disk"
        ) from error


def _root(root: Path) -> int:
    """The root is a person's word, so a link is followed there."""
    try:
        return os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    except OSError as error:
        raise NotPossibleNow(f"{str(root)!r} cannot be used as a root: {error.strerror}") from error


def _parts(relative: str) -> tuple[str, ...]:
    path = PurePosixPath(relative)
    if path.is_absolute() or ".." in path.parts:
        raise NotPossibleNow(f"{relative!r} is no place beneath the root; name it from the root on")
    return path.parts


def _enter(folder: int, name: str, *, make: bool, mode: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOTE_BYTES = 200


@contextmanager
def held_alone(folder: int, name: str, *, what: str, since: datetime) -> Iterator[None]:
    """Hold the lock while open. Raises `LockHeld`, with pid and time, when another process has it.

    `what` says what is held, as in "the sense loop of '/srv/x'".
    """
    with _opened(folder, name) as handle:
        if not _taken(handle):
            raise LockHeld(f"{what} is held by {_holder(handle)}; wait for it to end, or end it")
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "since": _short(since)}).encode(), 0)
        yield


@contextmanager
def opened_with_lock(
    folder: int, name: str, *, mode: int = 0o600, patience_seconds: float = 10.0
) -> Iterator[int]:
    """The file, open to be read and added to, made where it is not there, and held by this process alone.

    Raises `NotPossibleNow` when somebody keeps it for longer than `patience_seconds`.
    """
    give_up_at = time.monotonic() + patience_seconds
    while True:
        with _opened(folder, name, mode, os.O_APPEND) as handle:
            while not _taken(handle):
                if time.monotonic() > give_up_at:
                    raise NotPossibleNow(
                        f"{name!r} is kept locked by another process; end that one"
                    )
                time.sleep(0.005)
            if _goes_by(handle, folder, name):  # else it was turned over while we waited
                yield handle
                return


@contextmanager
def _opened(folder: int, name: str, mode: int = 0o600, flags: int = 0) -> Iterator[int]:
    with saying(name):
        handle = os.open(name, _OPEN | flags, mode, dir_fd=folder)
    try:
        if fault := why_not_plain(os.fstat(handle)):
            raise NotPossibleNow(f"{name!r} {fault}")
        yield handle
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _goes_by(handle: int, folder: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(handle), found)


def _holder(handle: int) -> str:
    """Who has it, as far as the file tells: its holder may be writing just now."""
    try:
        note = json.loads(os.pread(handle, _NOTE_BYTES, 0))
        return f"process {int(note['pid'])} since {datetime.fromisoformat(note['since']):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, KeyError, TypeError):
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


def _short(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat()


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
        content = read_plain(folder, name, _MAX_BYTES)
    if len(content) > _MAX_BYTES:
        raise NotPossibleNow(
            f"{relative!r} is larger than anything that belongs there; move it away"
        )
    return content


def _kept_beside(base: Path, relative: str, before: bytes, mode: int) -> str:
    """A copy of what is there, under a name that nothing else has."""
    for count in range(1, _MAX_BACKUPS + 1):
        backup = f"{relative}.bak{count if count > 1 else ''}"
        if place_new(base, backup, before, mode=mode) or placed(base, backup) == before:
            return backup
    raise NotPossibleNow(f"{relative!r} has {_MAX_BACKUPS} backups; move them away first")


def _must_not_be_a_folder(folder: int, name: str, relative: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise NotPossibleNow(f"{relative!r} is a folder where a file belongs; move it away first")
