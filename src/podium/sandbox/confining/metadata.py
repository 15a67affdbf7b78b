"""Modes, owners, times and attributes of files: done by the guard, and only where the tree may write.

Landlock lets these calls through for every file of the user. So the guard finds the file itself, looks
where it lies, and acts on exactly that one; the caller's call never reaches the kernel.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time

from podium.sandbox.confining.lookup import AT_FDCWD, open_descriptor, open_meant, path_of
from podium.sandbox.confining.notices import MAX_PATH_BYTES, SyscallNotice

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from collections.abc import Callable

_NOFOLLOW, _EMPTY_PATH = 0x100, 0x1000
_NOW, _OMIT = 0x3FFFFFFF, 0x3FFFFFFE
_MODES = 0o3777
"""Never set-uid."""
_MAX_ATTRIBUTE_BYTES = 1 << 16
_MAX_NAME_BYTES = 255

_BY_DESCRIPTOR = ("fchmod", "fchown", "fsetxattr", "fremovexattr")
_LINK_ITSELF = ("lchown", "lsetxattr", "lremovexattr")
_FLAGS_AT = {"fchmodat2": 3, "fchownat": 4, "utimensat": 3}
_WITH_FOLDER = ("fchmodat", "futimesat", *_FLAGS_AT)


def perform(notice: SyscallNotice, writable: list[str], still_waits: Callable[[], bool]) -> int:
    """Do the call for its caller. Gives its errno, 0 when it was done."""
    try:
        file = _open(notice)
    except OSError as error:
        return error.errno or errno.EACCES
    try:
        about = os.fstat(file)
        if not _may_change(file, about, writable) or not still_waits():
            return errno.EACCES
        return _act(notice, file, about)
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        os.close(file)


def _open(notice: SyscallNotice) -> int:
    name = notice.name
    if name in _BY_DESCRIPTOR:
        return open_descriptor(notice.pid, notice.number(0))
    flags = notice.number(_FLAGS_AT[name]) if name in _FLAGS_AT else 0
    folder, path_at = (notice.number(0), 1) if name in _WITH_FOLDER else (AT_FDCWD, 0)
    if notice.arguments[path_at] == 0:
        return open_descriptor(notice.pid, folder)
    path = os.fsdecode(notice.text_at(notice.arguments[path_at], MAX_PATH_BYTES))
    if not path:
        if flags & _EMPTY_PATH:
            return open_descriptor(notice.pid, folder)
        raise FileNotFoundError(errno.ENOENT, "an empty path")
    follow = name not in _LINK_ITSELF and not flags & _NOFOLLOW
    return open_meant(notice.pid, folder, path, follow)


def _may_change(file: int, about: os.stat_result, writable: list[str]) -> bool:
    if stat.S_ISREG(about.st_mode) and about.st_nlink == 0:
        return True  # has no name any more: nobody else can find it
    if stat.S_ISCHR(about.st_mode) or stat.S_ISBLK(about.st_mode):
        return False  # the machine's own, which a tree may only write to
    path = path_of(file)
    return any(path == tree or path.startswith(tree + "/") for tree in writable)


def _act(notice: SyscallNotice, file: int, about: os.stat_result) -> int:
    itself = f"/proc/self/fd/{file}"
    name = notice.name
    if "chmod" in name:
        return _change_mode(notice, itself, about)
    if "chown" in name:
        return _change_owner(notice, about)
    if "utime" in name or name == "futimesat":
        return _change_times(notice, itself, about)
    attribute = os.fsdecode(notice.text_at(notice.arguments[1], _MAX_NAME_BYTES))
    if "remove" in name:
        os.removexattr(itself, attribute)
        return 0
    size = notice.arguments[3]
    if size > _MAX_ATTRIBUTE_BYTES:
        return errno.E2BIG
    value = notice.bytes_at(notice.arguments[2], size) if size else b""
    os.setxattr(itself, attribute, value, notice.number(4))
    return 0


def _change_mode(notice: SyscallNotice, itself: str, about: os.stat_result) -> int:
    if stat.S_ISLNK(about.st_mode):
        return errno.EOPNOTSUPP
    at = 1 if notice.name in ("chmod", "fchmod") else 2
    os.chmod(itself, notice.arguments[at] & _MODES)  # noqa: PTH101 — pathlib loads too slowly
    return 0


def _change_owner(notice: SyscallNotice, about: os.stat_result) -> int:
    """To whom it belongs already, which is what archives and copies ask for; else no."""
    at = 2 if notice.name == "fchownat" else 1
    user, group = notice.number(at), notice.number(at + 1)
    same = user in (-1, about.st_uid) and group in (-1, about.st_gid)
    return 0 if same else errno.EPERM


def _change_times(notice: SyscallNotice, itself: str, about: os.stat_result) -> int:
    if stat.S_ISLNK(about.st_mode):
        return 0
    at = notice.arguments[1 if notice.name in ("utime", "utimes") else 2]
    if at == 0:
        os.utime(itself)
    elif notice.name == "utime":
        accessed, modified = struct.unpack("=qq", notice.bytes_at(at, 16))
        os.utime(itself, (accessed, modified))
    else:
        numbers = struct.unpack("=qqqq", notice.bytes_at(at, 32))
        unit = 1 if notice.name == "utimensat" else 1000
        times = (
            _timestamp_ns(numbers[0], numbers[1], unit, about.st_atime_ns),
            _timestamp_ns(numbers[2], numbers[3], unit, about.st_mtime_ns),
        )
        os.utime(itself, ns=times)
    return 0


def _timestamp_ns(seconds: int, part: int, unit: int, before: int) -> int:
    if unit == 1 and part == _NOW:
        return time.time_ns()
    return before if unit == 1 and part == _OMIT else seconds * 10**9 + part * unit
