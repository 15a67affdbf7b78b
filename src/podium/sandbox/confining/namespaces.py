"""Listening inside a tree's own network, from outside: no program has to run in there for it."""

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
else:
    # `socket` pulls in `enum` and `selectors`.
    import _socket as socket

NEW_MOUNTS, NEW_USER, NEW_NET = 0x00020000, 0x10000000, 0x40000000
OWNER_OF_NAMESPACE = 0xB701
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
        raise OSError(number, "nothing can listen in the tree's own network")
    return descriptors


def _listen_and_leave(network: int, line: socket.socket, ports: list[int]) -> None:
    try:
        owner = fcntl.ioctl(network, OWNER_OF_NAMESPACE)
        enter(owner, NEW_USER)
        enter(network, NEW_NET)
        sockets = [_listening(port) for port in ports]
        send_descriptors(line, b"ok", [made.fileno() for made in sockets])
    except OSError as error:
        line.send(str(error.errno or errno.EIO).encode())
    finally:
        os._exit(0)


def enter(namespace: int, kind: int) -> None:
    """Go into a namespace. Raises `OSError`."""
    if LIBC.setns(ctypes.c_int(namespace), ctypes.c_int(kind)) != 0:
        raise OSError(ctypes.get_errno(), "the namespace cannot be entered")


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.listen(_BACKLOG)
    return made
