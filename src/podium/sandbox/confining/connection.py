"""Connections of a tree that has no network of its own: made by the guard, to where they may go.

The guard takes a copy of the caller's socket and of the address, judges that address and connects to it.
So no other thread of the caller can change what was judged, neither the address nor the socket.
"""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
import select

from podium.sandbox.confining.file_calls import AT_FDCWD, copy_of_descriptor, open_meant, path_of
from podium.sandbox.confining.notices import SyscallNotice
from podium.sandbox.confining.seccomp import AF_INET, AF_INET6, AF_UNIX
from podium.sandbox.confining.syscalls import LIBC
from podium.sandbox.guard.processes import descendants_of

TYPE_CHECKING = False  # what a type checker takes for True; `typing` itself loads too slowly
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
else:
    # `socket` pulls in `enum` and `selectors`.
    import _socket as socket

_MAX_ADDRESS_BYTES = 128
_LOOPBACK = b"\x7f\x00\x00\x01"
_LOOPBACK_6 = bytes(15) + b"\x01"
_MAPPED = bytes(10) + b"\xff\xff"
_PATIENCE_SECONDS = 130
"""As long as the kernel itself tries."""


class ConnectBroker:
    """Connections of the tree, made for it as far as they are allowed."""

    def __init__(
        self, network_open: bool, ports: list[int], sockets: list[str] | None, own: list[str]
    ) -> None:
        """`sockets` are files of sockets or folders with some, None for all that the tree sees; those in
        `own` trees are its own."""
        self._network_open = network_open
        self._ports = ports
        self._sockets = sockets
        self._own = own

    def perform(self, notice: SyscallNotice, reply: Callable[[int], None]) -> None:
        """Connect for the caller, and tell the errno, 0 when it stands; perhaps later, from a thread."""
        size = notice.number(2)
        if not 2 <= size <= _MAX_ADDRESS_BYTES:
            return reply(errno.EINVAL)
        address = notice.bytes_at(notice.arguments[1], size)
        if len(address) < size:
            return reply(errno.EFAULT)
        line = socket.socket(fileno=copy_of_descriptor(notice.pid, notice.number(0)))
        attempt = _ConnectAttempt(line, reply)
        try:
            self._connect(notice, attempt, address)
        except OSError as error:
            attempt.over(error.errno or errno.EACCES)
        return None

    def _connect(self, notice: SyscallNotice, attempt: _ConnectAttempt, address: bytes) -> None:
        family = int.from_bytes(address[:2], "little")
        if attempt.line.family == AF_UNIX == family:
            self._connect_file(notice, attempt, address[2:])
        elif family not in (AF_INET, AF_INET6):
            attempt.over(errno.EAFNOSUPPORT)
        elif self._network_open or self._is_allowed(family, address):
            attempt.make(address)
        else:
            attempt.over(errno.EACCES)

    def _is_allowed(self, family: int, address: bytes) -> bool:
        if family == AF_INET:
            here = address[4:8] == _LOOPBACK
        else:
            here = address[8:24] in (_LOOPBACK_6, _MAPPED + _LOOPBACK)
        port = int.from_bytes(address[2:4], "big")
        return here and (port in self._ports or is_own_port(port))

    def _connect_file(self, notice: SyscallNotice, attempt: _ConnectAttempt, name: bytes) -> None:
        path = name.split(b"\0", 1)[0]
        if not path:
            return attempt.over(errno.EACCES)  # abstract: it lies in no folder that could be judged
        file = open_meant(notice.pid, AT_FDCWD, os.fsdecode(path))
        try:
            if not self._is_reachable(path_of(file)):
                return attempt.over(errno.EACCES)
            there = AF_UNIX.to_bytes(2, "little") + f"/proc/self/fd/{file}".encode() + b"\0"
            return attempt.make(there)
        finally:
            os.close(file)

    def _is_reachable(self, path: str) -> bool:
        if self._sockets is None:
            return True
        trees = (*self._sockets, *self._own)
        return any(path == tree or path.startswith(tree + "/") for tree in trees)


class _ConnectAttempt:
    """One connection that is being made on our own copy of the caller's socket."""

    def __init__(self, line: socket.socket, reply: Callable[[int], None]) -> None:
        self.line = line
        self._reply = reply
        self._waits = os.get_blocking(line.fileno())

    def make(self, address: bytes) -> None:
        """Connect to exactly these bytes. A caller that would wait is waited for in a thread."""
        number = self.line.fileno()
        os.set_blocking(number, False)
        failed = LIBC.connect(ctypes.c_int(number), address, ctypes.c_uint32(len(address)))
        why = ctypes.get_errno() if failed else 0
        if why == errno.EINPROGRESS and self._waits:
            _thread.start_new_thread(self._wait, ())
        else:
            self.over(why)

    def over(self, why: int) -> None:
        os.set_blocking(self.line.fileno(), self._waits)
        self.line.close()
        self._reply(why)

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self.line.fileno(), select.POLLOUT)
        if poll.poll(_PATIENCE_SECONDS * 1000):
            self.over(self.line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        else:
            self.over(errno.ETIMEDOUT)


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
