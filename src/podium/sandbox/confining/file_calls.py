"""Calls on files that the guard performs for their callers.

It finds the file that a waiting call means, as its caller would find it, and acts on exactly that one: on modes,
owners, times and attributes, which Landlock lets through for every file of the user, and on terminals of a tree that
has no `/dev/pts` of its own. The caller's call never reaches the kernel.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
import time

from podium.sandbox.confining.notices import MAX_PATH_BYTES, SyscallNotice, hand_over
from podium.sandbox.confining.syscalls import LIBC, number_of

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from collections.abc import Callable

_OPENAT2 = 437
_IN_ROOT, _NO_MAGICLINKS = 0x10, 0x02
AT_FDCWD = -100


def open_meant(pid: int, folder: int, path: str, follow: bool = True) -> int:
    """A descriptor (O_PATH) of the file that `path` names for the process. Raises `OSError`.

    `folder` is a descriptor of that process, or `AT_FDCWD`. What is found is what is judged and,
    where we act ourselves, what is acted on: names can be changed meanwhile, this cannot.
    """
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    own = _own_file(pid, path)
    if own:
        return os.open(own, os.O_PATH | os.O_CLOEXEC)
    if not path.startswith("/"):
        start = f"/proc/{pid}/cwd" if folder == AT_FDCWD else f"/proc/{pid}/fd/{folder}"
        path = f"{os.readlink(start)}/{path}"  # noqa: PTH115 — pathlib loads too slowly
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _open_in(root, path, flags)
    finally:
        os.close(root)


def _own_file(pid: int, path: str) -> str:
    """The content of `/proc/self` for the caller instead of us; only these exact forms."""
    if path in ("/proc/self/exe", "/proc/thread-self/exe"):
        return f"/proc/{pid}/exe"
    for folder in ("/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"):
        number = path.removeprefix(folder)
        if path.startswith(folder) and number.isdecimal():
            return f"/proc/{pid}/fd/{number}"
    return ""


def open_descriptor(pid: int, number: int) -> int:
    """A descriptor (O_PATH) of what a descriptor of the process stands for."""
    return os.open(f"/proc/{pid}/fd/{number}", os.O_PATH | os.O_CLOEXEC)


def path_of(descriptor: int) -> str:
    """The present path of the file behind a descriptor."""
    return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 — as above


def _open_in(root: int, path: str, flags: int) -> int:
    how = struct.pack("=QQQ", flags, 0, _IN_ROOT | _NO_MAGICLINKS)
    descriptor = LIBC.syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(root), os.fsencode(path), how, ctypes.c_size_t(24)
    )
    if descriptor < 0:
        number = ctypes.get_errno() or errno.EACCES
        raise OSError(number, os.strerror(number), path)
    return int(descriptor)


def copy_of_descriptor(pid: int, descriptor: int) -> int:
    """Our own copy of a descriptor of that process."""
    process = _open_process(pid)
    try:
        number = ctypes.c_long(number_of("pidfd_getfd"))
        copy = LIBC.syscall(
            number, ctypes.c_int(process), ctypes.c_int(descriptor), ctypes.c_uint(0)
        )
        if copy < 0:
            raise OSError(ctypes.get_errno(), "no such descriptor")
        return int(copy)
    finally:
        os.close(process)


def _open_process(pid: int) -> int:
    """A handle of the process of this thread: the kernel gives none for other threads than the first."""
    with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123 — pathlib loads too slowly
        for line in file:
            if line.startswith(b"Tgid:"):
                return os.pidfd_open(int(line.split()[1]))
    raise ProcessLookupError(errno.ESRCH, "no such process")


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


def change_metadata(
    notice: SyscallNotice, writable: list[str], still_waits: Callable[[], bool]
) -> int:
    """Do the call for its caller. Gives its errno, 0 when it was done."""
    try:
        file = _open_target(notice)
    except OSError as error:
        return error.errno or errno.EACCES
    try:
        about = os.fstat(file)
        if not _may_change(file, about, writable) or not still_waits():
            return errno.EACCES
        return _change(notice, file, about)
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        os.close(file)


def _open_target(notice: SyscallNotice) -> int:
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


def _change(notice: SyscallNotice, file: int, about: os.stat_result) -> int:
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


OTHER_END = 0x5441
"""The request of `ioctl` for the other end of a terminal."""
_MASTERS = os.makedev(5, 2)
_ALLOWED_FLAGS = os.O_ACCMODE | os.O_NONBLOCK | os.O_CLOEXEC


def give_other_end(listener: int, notice: SyscallNotice) -> None:
    """Answer the call with the end that belongs to the caller's own. Raises `OSError`; then it still waits.

    By their names a tree would reach every terminal of the user. Who holds one end can ask for the other without a
    name, but Landlock judges that as if it had one. So the guard asks in its place.
    """
    master = copy_of_descriptor(notice.pid, notice.number(0))
    try:
        about = os.fstat(master)
        if not stat.S_ISCHR(about.st_mode) or about.st_rdev != _MASTERS:
            raise OSError(errno.ENOTTY, "not an end of a terminal")
        flags = notice.number(2) & _ALLOWED_FLAGS
        # Never as a terminal of the guard's own.
        end = fcntl.ioctl(master, OTHER_END, flags | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(master)
    try:
        hand_over(listener, notice, end, flags & os.O_CLOEXEC)
    finally:
        os.close(end)
