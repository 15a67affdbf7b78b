"""Finding the file that a waiting call means, as its caller would find it, and holding on to it."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from podium.sandbox.confining.syscalls import LIBC, number_of

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
