"""Entering the namespaces of a tree from outside: to listen in its network, to protect devices, to start a program."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys

from podium.sandbox.confining.syscalls import LIBC

TYPE_CHECKING = False  # what a type checker takes for True; `typing` itself loads too slowly
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
else:
    # `socket` pulls in `enum` and `selectors`.
    import _socket as socket

_NEW_MOUNTS, _NEW_CGROUP, _NEW_NAMES = 0x00020000, 0x02000000, 0x04000000
_NEW_SHARED_MEMORY, _NEW_USER, _NEW_PIDS, _NEW_NET = 0x08000000, 0x10000000, 0x20000000, 0x40000000
_OWNER_OF_NAMESPACE = 0xB701
"""The `ioctl` that gives the user namespace by that a namespace belongs to."""
_DESCRIPTOR_BYTES = 4  # a C int
_BACKLOG = 128


def send_descriptors(line: socket.socket, payload: bytes, descriptors: list[int]) -> None:
    """Hand descriptors to the process at the other end, with a word beside them."""
    packed = b"".join(fd.to_bytes(_DESCRIPTOR_BYTES, sys.byteorder) for fd in descriptors)
    line.sendmsg([payload], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])


def receive_descriptors(line: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """Receive from `send_descriptors`; nothing when the other end is closed."""
    ancillary_size = socket.CMSG_SPACE(most * _DESCRIPTOR_BYTES)
    payload, messages, _, _ = line.recvmsg(200, ancillary_size, socket.MSG_CMSG_CLOEXEC)
    packed = b"".join(data for _, _, data in messages)
    starts = range(0, len(packed), _DESCRIPTOR_BYTES)
    return payload, [
        int.from_bytes(packed[at : at + _DESCRIPTOR_BYTES], sys.byteorder) for at in starts
    ]


def listen_inside(pid: int, ports: list[int]) -> list[int]:
    """Listening sockets on 127.0.0.1 in the network of a process, one for each port.

    The user namespace that owns that network was made by our own user, so a fork of us may enter both.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    child = os.fork()
    if child == 0:
        _listen_and_leave(network, theirs, ports)
    os.close(network)
    theirs.close()
    payload, descriptors = receive_descriptors(ours, len(ports))
    ours.close()
    os.waitpid(child, 0)
    if len(descriptors) != len(ports):
        number = int(payload) if payload.isdigit() else errno.EIO
        raise OSError(number, "cannot listen in the sandbox's network")
    return descriptors


def _listen_and_leave(network: int, line: socket.socket, ports: list[int]) -> None:
    try:
        owner = fcntl.ioctl(network, _OWNER_OF_NAMESPACE)
        _enter(owner, _NEW_USER)
        _enter(network, _NEW_NET)
        sockets = [_listening(port) for port in ports]
        send_descriptors(line, b"ok", [made.fileno() for made in sockets])
    except OSError as error:
        line.send(str(error.errno or errno.EIO).encode())
    finally:
        os._exit(0)


def _enter(namespace: int, kind: int) -> None:
    """Go into a namespace. Raises `OSError`."""
    if LIBC.setns(ctypes.c_int(namespace), ctypes.c_int(kind)) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter the namespace")


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.listen(_BACKLOG)
    return made


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
        raise OSError(number, "cannot protect the machine's devices")


def _hold_and_leave(mounts: int) -> None:
    failure = errno.EIO
    try:
        _enter(fcntl.ioctl(mounts, _OWNER_OF_NAMESPACE), _NEW_USER)
        _enter(mounts, _NEW_MOUNTS)
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


_KINDS = {
    "cgroup": _NEW_CGROUP,
    "ipc": _NEW_SHARED_MEMORY,
    "uts": _NEW_NAMES,
    "net": _NEW_NET,
    "pid": _NEW_PIDS,
    "mnt": _NEW_MOUNTS,
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
        raise OSError(int(number or errno.EIO), "cannot enter the sandbox")
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
        owner = fcntl.ioctl(spaces["mnt"], _OWNER_OF_NAMESPACE)
        _enter(owner, _NEW_USER)
        for name, descriptor in spaces.items():
            _enter(descriptor, _KINDS[name])
        if os.fstat(own).st_ino != os.fstat(owner).st_ino:
            # Below the owner, so that no further one can be made.
            _enter(own, _NEW_USER)
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
