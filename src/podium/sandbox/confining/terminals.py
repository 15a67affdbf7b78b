"""Terminals of a tree that has no `/dev/pts` of its own: the guard opens the other ends of those it made.

By their names a tree would reach every terminal of the user. Who holds one end can ask for the other without a
name, but Landlock judges that as if it had one. So the guard asks in its place, and hands over what it gets.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from podium.sandbox.confining.lookup import copy_of_descriptor
from podium.sandbox.confining.notices import SyscallNotice, hand_over

OTHER_END = 0x5441
"""The request of `ioctl` for the other end of a terminal."""
_MASTERS = os.makedev(5, 2)
_ALLOWED_FLAGS = os.O_ACCMODE | os.O_NONBLOCK | os.O_CLOEXEC


def give_other_end(listener: int, notice: SyscallNotice) -> None:
    """Answer the call with the end that belongs to the caller's own. Raises `OSError`; then it still waits."""
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
