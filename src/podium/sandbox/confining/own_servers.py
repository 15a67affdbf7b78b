"""True if a port of this machine is one that the tree itself listens at."""

from __future__ import annotations

import os

from podium.sandbox.guard.processes import descendants_of

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"
_ADDRESS_AT, _STATE_AT, _INODE_AT = 1, 3, 9


def is_own_port(port: int) -> bool:
    """True when somebody listens there, and everybody who does is a descendant of this process."""
    listening = _listening_at(port)
    if not listening:
        return False
    for entry in descendants_of(os.getpid()):
        listening -= _sockets_of(entry.pid)
        if not listening:
            return True
    return False


def _listening_at(port: int) -> set[str]:
    """The sockets, by their inodes, on whatever address."""
    inodes: set[str] = set()
    for table in _TABLES:
        try:
            with open(table) as file:  # noqa: PTH123 — pathlib loads too slowly
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        for row in rows:
            if row[_STATE_AT] == _LISTENS and int(row[_ADDRESS_AT].rpartition(":")[2], 16) == port:
                inodes.add(row[_INODE_AT])
    return inodes


def _sockets_of(pid: int) -> set[str]:
    folder = f"/proc/{pid}/fd"
    inodes: set[str] = set()
    try:
        names = os.listdir(folder)  # noqa: PTH208 — as above
    except OSError:
        return inodes
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115 — as above
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    return inodes
