"""Files of the root: what they are before they are read, and reading them without being led out.

Looking must neither wait nor wander: a named pipe would wait for its other end, and a symlink may lead anywhere.
What is really there is resolved first; then each folder on the way is opened from the one before it, and a symlink
that appeared in between is an error.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from podium.bridge.sources.kit import NotSensed

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 3
_KINDS = {
    stat.S_IFDIR: "a folder, not a file",
    stat.S_IFIFO: "a named pipe, not a file",
    stat.S_IFSOCK: "a socket, not a file",
    stat.S_IFCHR: "a device, not a file",
    stat.S_IFBLK: "a device, not a file",
}

Signature = tuple[int, ...]
"""Device, inode, size, times of content and of properties: what changes with every write that counts."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file as the file system tells of it."""

    place: str
    """From the root on, as it was asked for."""
    real: str = ""
    """From the root on, with all symlinks resolved."""
    signature: Signature = ()
    changed_ns: int = 0
    fault: NotSensed | None = None
    """Why there is nothing to read."""

    @property
    def size(self) -> int:
        return self.signature[2]

    @property
    def facts(self) -> tuple[object, ...]:
        said = (self.fault.condition, self.fault.why) if self.fault else ()
        return (self.place, self.real, self.signature, *said)


def find(root: Path, place: str, is_own: Callable[[str], bool]) -> Found:
    """What is at this place. Never raises for what is found there."""
    try:
        # Asked before it is looked for: that the loop begins to write it must not be news either.
        if is_own(os.path.normpath(place)) or is_own(real := real_place(root, place)):
            raise NotSensed("unreadable", "Podium's own loop writes it, so it is not looked at")
        path = root / real
        with said_as_fault(path):
            return found_as(place, real, os.lstat(path))
    except NotSensed as fault:
        return Found(place, fault=fault)


def found_as(place: str, real: str, status: os.stat_result) -> Found:
    """The same, of a file whose status is known and that is no symlink."""
    fault = None
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a plain file")
        fault = NotSensed("unreadable", f"it is {kind}")
    if stat.S_ISDIR(status.st_mode):
        # Its times change with every file that is made in it, also with the loop's own.
        return Found(place, real, fault=fault)
    return Found(place, real, signature_of(status), status.st_mtime_ns, fault)


def signature_of(status: os.stat_result) -> Signature:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def real_place(root: Path, place: str) -> str:
    """Where it really is, from the root on. Raises `NotSensed` when it is not there or not inside."""
    top = os.path.realpath(root)
    path = Path(top, place)
    with said_as_fault(path):
        full = os.path.realpath(path, strict=True)
    if os.path.commonpath((top, full)) != top:
        raise NotSensed("unreadable", "it leads out of the project folder, so it is not followed")
    return os.path.relpath(full, top)


@contextmanager
def said_as_fault(path: Path) -> Iterator[None]:
    """Turns what the file system says into the fault of a look."""
    try:
        yield
    except FileNotFoundError:
        if path.is_symlink():
            raise NotSensed("unreadable", "it is a link that leads nowhere") from None
        raise NotSensed("missing", "it is not there") from None
    except OSError as error:
        raise NotSensed("unreadable", f"{error.strerror or error}".lower()) from None
    except ValueError:
        raise NotSensed("unreadable", "no file can have this name") from None


def read_whole(root: Path, found: Found, limit_bytes: int) -> bytes:
    """The whole file. Raises `NotSensed` when it is too large, or never stands still."""
    if found.size > limit_bytes:
        raise _too_large(found.size, limit_bytes)
    with _opened(root, found) as handle:
        for _ in range(_TRIES):
            before = signature_of(os.fstat(handle))
            content = os.pread(handle, limit_bytes + 1, 0)
            if len(content) > limit_bytes:
                raise _too_large(before[2], limit_bytes)
            if signature_of(os.fstat(handle)) == before and len(content) == before[2]:
                return content
    raise NotSensed("malformed", "it was being written while it was read")


def read_end(root: Path, found: Found, limit_bytes: int) -> tuple[bytes, bool]:
    """The last bytes of a file, and whether these are all of it."""
    with _opened(root, found) as handle:
        start = max(0, os.fstat(handle).st_size - limit_bytes)
        return os.pread(handle, limit_bytes, start), start == 0


def _too_large(size: int, limit_bytes: int) -> NotSensed:
    return NotSensed("too_large", f"it has {size} bytes; up to {limit_bytes} are read")


@contextmanager
def _opened(root: Path, found: Found) -> Iterator[int]:
    *folders, name = PurePosixPath(found.real).parts
    with said_as_fault(root / found.place):
        handle = os.open(os.path.realpath(root), _FOLDER)
        try:
            for folder in folders:
                deeper = os.open(folder, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = deeper
            file = os.open(name, _FILE, dir_fd=handle)
        finally:
            os.close(handle)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise NotSensed("unreadable", "it is not a plain file any more")
            yield file
        finally:
            os.close(file)
