"""Files opened relative to folder handles: no link is followed, no pipe or device is waited for.

Checking a path and then opening it by name loses against somebody who swaps a folder for a
symlink in between. Here every name is opened relative to the handle of the folder before it, and
a symlink anywhere on the way is an error. Names without a folder are paths that nobody else can
change the folders of; only their last part is held to this.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TypedDict, Unpack

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: opening a named pipe would wait for its other end.
_NEVER_WAITING = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_IN_THE_WAY = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
_KINDS = {
    stat.S_IFLNK: "is a symbolic link, not a plain file; put the file itself there",
    stat.S_IFDIR: "is a folder, not a plain file",
    stat.S_IFIFO: "is a named pipe, not a plain file",
    stat.S_IFSOCK: "is a socket, not a plain file",
    stat.S_IFCHR: "is a device, not a plain file",
    stat.S_IFBLK: "is a device, not a plain file",
}


class UnusableFile(OSError):
    """A path that is refused. As text it names the path, says what is wrong and what to do."""

    def __init__(self, path: str, problem: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, problem, path)

    def __str__(self) -> str:
        return f"{self.filename!r} {self.strerror}"


class NotPlainFile(UnusableFile):
    """A link, a folder, a pipe or the like has the name of a file, or the file has a second name."""


class NotFolder(UnusableFile):
    """Something else has the name of a folder on the way."""


class LinkInTheWay(NotFolder):
    """A symbolic link has the name of a folder on the way."""


class FileTooLarge(UnusableFile):
    """The file is larger than what is read of it."""

    def __init__(self, path: str, limit_bytes: int) -> None:
        super().__init__(path, f"is larger than {limit_bytes} bytes", errno.EFBIG)


@contextmanager
def named(path: str) -> Iterator[None]:
    """Name this path, as it was asked for, in what the system refuses within."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


def parts_below(relative: str) -> tuple[str, ...]:
    """The names from a root to this path. Raises `UnusableFile` for one that may lead out."""
    path = PurePosixPath(relative)
    if path.is_absolute() or ".." in path.parts:
        raise UnusableFile(relative, "is not a path below the root; write it relative to the root")
    return path.parts


@contextmanager
def open_folder(
    root: Path | str,
    relative: str = ".",
    *,
    make: bool = False,
    mode: int = 0o777,
    replace: bool = False,
    follow_root: bool = False,
    asked: str = "",
) -> Iterator[int]:
    """The handle of a folder below the root; with `make` the folders that are missing are made.

    `replace`: what else has the name of a folder on the way is removed. `follow_root`: the root is a person's word and
    may be a link. `asked`: what errors name instead of the folder. Raises `FileNotFoundError` where a folder below the
    root is missing, `UnusableFile` and other errors of the system.
    """
    asked = asked or relative
    with named(asked):
        parts = parts_below(relative)
    handle = _open_root(root, follow=follow_root)
    try:
        with named(asked):
            for name in parts:
                inner = enter_folder(handle, name, make=make, mode=mode, replace=replace)
                os.close(handle)
                handle = inner
        yield handle
    finally:
        os.close(handle)


def _open_root(root: Path | str, *, follow: bool) -> int:
    try:
        return os.open(root, FOLDER_FLAGS & ~os.O_NOFOLLOW if follow else FOLDER_FLAGS)
    except OSError as error:
        problem = f"cannot be used as a root: {error.strerror}"
        raise UnusableFile(os.fspath(root), problem, error.errno or errno.EINVAL) from None


def enter_folder(
    folder: int, name: str, *, make: bool = False, mode: int = 0o777, replace: bool = False
) -> int:
    """The handle of a folder in a folder. Arguments and errors are those of `open_folder`."""
    try:
        return _open_folder(folder, name)
    except FileNotFoundError:
        if not make:
            raise
    except NotFolder:
        if not replace:
            raise
        os.unlink(name, dir_fd=folder)
    with suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)
    return _open_folder(folder, name)


def _open_folder(folder: int, name: str) -> int:
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        status = status_at(folder, name)
        if status is None or stat.S_ISLNK(status.st_mode):
            raise LinkInTheWay(name, _in_the_way("symbolic link", name), errno.ELOOP) from None
        raise NotFolder(name, _in_the_way("file", name), errno.ENOTDIR) from None


def _in_the_way(what: str, name: str) -> str:
    return f"has a {what}, {name!r}, in place of a folder; put a real folder there"


def status_at(folder: int, name: str) -> os.stat_result | None:
    """Status of this name in the folder, a link's own. None when there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def why_not_plain(status: os.stat_result, *, single_name: bool = False) -> str:
    """The reason why this is not a plain file, in words; with `single_name` why it is not one with no other name.

    Under a second name, which may lie anywhere, the file can be changed after it was judged. Empty if it will do.
    """
    if not stat.S_ISREG(status.st_mode):
        return _KINDS.get(stat.S_IFMT(status.st_mode), "is not a plain file")
    if single_name and status.st_nlink > 1:
        return (
            f"is a hard link: the file has {status.st_nlink} names, and it is not known where the others are; "
            "replace it with a copy"
        )
    return ""


def check_plain(status: os.stat_result, path: str, *, single_name: bool = False) -> None:
    """Raise `NotPlainFile` for what `why_not_plain` finds fault with."""
    if problem := why_not_plain(status, single_name=single_name):
        is_folder = stat.S_ISDIR(status.st_mode)
        raise NotPlainFile(path, problem, errno.EISDIR if is_folder else errno.EINVAL)


class OpenOptions(TypedDict, total=False):
    """Options for opening a plain file."""

    single_name: bool
    """Refuse a file that has another name, too."""
    follow: bool
    """The name is a person's word and may be a link."""
    flags: int
    """Such as `os.O_APPEND`."""
    mode: int
    """Of a file that is made, less the umask. Private unless said otherwise."""


def open_plain(path: Path | str, folder: int | None = None, **options: Unpack[OpenOptions]) -> int:
    """The handle of a plain file that is there, to be read unless `flags` say otherwise.

    Raises `NotPlainFile` and other errors of the system.
    """
    name, follow = os.fspath(path), options.get("follow", False)
    flags = options.get("flags", os.O_RDONLY) | _NEVER_WAITING | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(name, flags, options.get("mode", 0o600), dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise NotPlainFile(name, _KINDS[stat.S_IFLNK], errno.ELOOP) from None
        if error.errno == errno.ENXIO:
            raise NotPlainFile(name, _KINDS[stat.S_IFSOCK], errno.ENXIO) from None
        raise
    try:
        check_plain(os.fstat(handle), name, single_name=options.get("single_name", False))
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_or_create(
    path: Path | str, folder: int | None = None, **options: Unpack[OpenOptions]
) -> int:
    """The handle of a plain file to read and write, made where it is missing. Raises as `open_plain` does."""
    options["flags"] = options.get("flags", 0) | os.O_RDWR | os.O_CREAT
    return open_plain(path, folder, **options)


def create_new(path: Path | str, folder: int | None = None, *, mode: int = 0o600) -> int:
    """The handle of a new file to write. Raises `FileExistsError` for whatever has its name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, mode, dir_fd=folder)


def read_start(
    path: Path | str, limit_bytes: int, folder: int | None = None, **options: Unpack[OpenOptions]
) -> bytes:
    """The first bytes of a plain file, at most so many. Raises as `open_plain` does."""
    with open(open_plain(path, folder, **options), "rb") as file:
        return file.read(limit_bytes)


def read_file(
    path: Path | str, limit_bytes: int, folder: int | None = None, **options: Unpack[OpenOptions]
) -> bytes:
    """The whole content of a plain file. Raises `FileTooLarge`, and as `open_plain` does."""
    content = read_start(path, limit_bytes + 1, folder, **options)
    if len(content) > limit_bytes:
        raise FileTooLarge(os.fspath(path), limit_bytes)
    return content
