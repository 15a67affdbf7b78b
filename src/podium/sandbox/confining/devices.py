"""The machine's devices inside a root's sandbox: used there, and left as they are.

Bubblewrap shows the very files of the machine. They belong to root, who may change modes and times of his files
without any capability. On a read-only mount he may not, and devices can be written to all the same; but
bubblewrap itself makes no read-only mount on which devices work.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os

from podium.sandbox.confining.namespaces import NEW_MOUNTS, NEW_USER, OWNER_OF_NAMESPACE, enter
from podium.sandbox.confining.syscalls import LIBC

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_TERMINAL = "console"
"""The one that bubblewrap itself was started on, if it was."""
_READ_ONLY, _REMOUNT, _BIND = 1, 32, 4096
_PRESERVED_FLAGS = 2 | 8
"""No set-uid, no programs; whoever is in a user namespace may not take these off."""


def hold_devices(pid: int) -> None:
    """Make them read-only in the mounts of a process that waits for its start. Raises `OSError`."""
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        _hold_and_leave(mounts)
    os.close(mounts)
    _, status = os.waitpid(child, 0)
    if status != 0:
        number = os.WEXITSTATUS(status) or errno.EIO
        raise OSError(number, "the machine's devices cannot be protected")


def _hold_and_leave(mounts: int) -> None:
    failure = errno.EIO
    try:
        enter(fcntl.ioctl(mounts, OWNER_OF_NAMESPACE), NEW_USER)
        enter(mounts, NEW_MOUNTS)
        for name in _DEVICES:
            _make_read_only(f"/dev/{name}")
        if os.path.exists(f"/dev/{_TERMINAL}"):  # noqa: PTH110 — pathlib loads too slowly
            _make_read_only(f"/dev/{_TERMINAL}")
        failure = 0
    except OSError as error:
        failure = error.errno or errno.EIO
    finally:
        os._exit(failure)


def _make_read_only(path: str) -> None:
    flags = os.statvfs(path).f_flag & _PRESERVED_FLAGS | _READ_ONLY | _REMOUNT | _BIND
    if LIBC.mount(None, path.encode(), None, ctypes.c_ulong(flags), None) != 0:
        raise OSError(ctypes.get_errno(), "cannot be made read-only", path)
