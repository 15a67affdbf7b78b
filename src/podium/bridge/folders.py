"""Files beneath a root that other programs write in too, reached one folder handle at a time.

Whoever may write in a shared folder may also put a symlink there. Here every name is opened relative to
the handle of the folder before it, and a symlink anywhere on the way is refused, whenever it appeared.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from podium.domain.errors import NotPossibleNow

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
