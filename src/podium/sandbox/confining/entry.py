"""Going into a sandbox that stands, from outside."""

from __future__ import annotations

import errno
import fcntl
import os

from podium.sandbox.confining.namespaces import (
    NEW_MOUNTS,
    NEW_NET,
    NEW_USER,
    OWNER_OF_NAMESPACE,
    enter,
)
from podium.sandbox.confining.syscalls import LIBC

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from collections.abc import Callable

_NEW_CGROUP, _NEW_NAMES, _NEW_SHARED_MEMORY, _NEW_PIDS = (
    0x02000000,
    0x04000000,
    0x08000000,
    0x20000000,
)
_KINDS = {
    "cgroup": _NEW_CGROUP,
    "ipc": _NEW_SHARED_MEMORY,
    "uts": _NEW_NAMES,
    "net": NEW_NET,
    "pid": _NEW_PIDS,
    "mnt": NEW_MOUNTS,
}
"""The last one takes `/proc` away, by which the others are found."""
_PR_SET_DUMPABLE = 4


def fork_inside(holder: int, be: Callable[[], None]) -> int:
    """Fork a process in all namespaces of this one, which `be` must turn into something else. Gives its pid outside.

    It becomes a child of this process, has its session and group, and all rights inside until it drops them. Raises
    `OSError`.
    """
    own = os.open(f"/proc/{holder}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    spaces = _spaces_of(holder)
    read_end, write_end = os.pipe()
    usher = os.fork()
    if usher == 0:
        _usher_in(own, spaces, write_end, be)
    for descriptor in (own, write_end, *spaces.values()):
        os.close(descriptor)
    report_text = os.read(read_end, 32).decode()
    os.close(read_end)
    os.waitpid(usher, 0)
    kind, _, number = report_text.partition(" ")
    if kind != "pid":
        raise OSError(int(number or errno.EIO), "the sandbox cannot be entered")
    return int(number)


def _spaces_of(holder: int) -> dict[str, int]:
    """Descriptors of those namespaces that are not ours anyway, in the order of entering."""
    descriptors: dict[str, int] = {}
    for name in _KINDS:
        theirs = f"/proc/{holder}/ns/{name}"
        if os.stat(theirs).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:  # noqa: PTH116 — pathlib loads too slowly
            descriptors[name] = os.open(theirs, os.O_RDONLY | os.O_CLOEXEC)
    return descriptors


def _usher_in(own: int, spaces: dict[str, int], report: int, be: Callable[[], None]) -> None:
    """Enter, and fork: a process itself never changes its pid namespace. Never returns."""
    outcome = f"errno {errno.EIO}"
    try:
        owner = fcntl.ioctl(spaces["mnt"], OWNER_OF_NAMESPACE)
        enter(owner, NEW_USER)
        for name, descriptor in spaces.items():
            enter(descriptor, _KINDS[name])
        if os.fstat(own).st_ino != os.fstat(owner).st_ino:
            # Below the owner, so that no further one can be made.
            enter(own, NEW_USER)
        pid = os.fork()
        if pid == 0:
            _become_dumpable()
            be()
        outcome = f"pid {pid}"
    except OSError as error:
        outcome = f"errno {error.errno or errno.EIO}"
    finally:
        os.write(report, outcome.encode())
        os._exit(0)


def _become_dumpable() -> None:
    """Become visible to the guard, which has to look at what it starts: a process that entered is hidden from it."""
    LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
