"""The process that all guards are forked from. It never sees an order, a secret or a program.

For each tree Podium sends it four descriptors: stdin, stdout and stderr of the program, and the
control socket. The fork that becomes the guard holds these and no others; here they are closed.
"""

from __future__ import annotations

import errno
import os
import select
import sys

from podium.sandbox.guard.processes import signal
from podium.sandbox.guard.watch import leave_signals_to_podium, say, watch_over

TYPE_CHECKING = False  # what a type checker takes for True; `typing` itself loads too slowly
if TYPE_CHECKING:
    import socket
else:
    # `socket` pulls in `enum` and `selectors`, which would double the time to start.
    import _socket as socket

_DESCRIPTORS = 4
_DESCRIPTOR_BYTES = 4  # a C int


def main(requests: str, owner_pid: str) -> None:
    """Fork a guard for every request on this socket, until Podium is gone."""
    leave_signals_to_podium()
    # The kernel collects the dead: how a guard ended is heard from itself.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    podium = socket.socket(fileno=int(requests))
    owner = _handle_of(int(owner_pid))
    held = [podium.fileno()] + ([] if owner is None else [owner])
    while not _is_gone(podium, owner):
        descriptors = _receive(podium)
        # Fewer come through where too many files are open. Podium sees their other ends close.
        if len(descriptors) == _DESCRIPTORS and _fork(control=descriptors[-1]) == 0:
            _become_guard(descriptors, held)
        _close(descriptors)
    os._exit(0)


def _handle_of(pid: int) -> int | None:
    """Readable once that process is gone: the socket stays open while a forked copy of Podium
    holds it. None where there are no such handles."""
    try:
        return os.pidfd_open(pid)
    except AttributeError:
        return None
    except OSError as error:
        if error.errno == errno.ESRCH:
            os._exit(0)
        return None


def _is_gone(podium: socket.socket, owner: int | None) -> bool:
    poll = select.poll()
    for descriptor in (podium.fileno(), owner):
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
    return any(descriptor == owner for descriptor, _ in poll.poll())


def _receive(podium: socket.socket) -> list[int]:
    """The descriptors of one request. Leaves when Podium closed its end."""
    ancillary_size = socket.CMSG_SPACE(_DESCRIPTORS * _DESCRIPTOR_BYTES)
    data, messages, _, _ = podium.recvmsg(1, ancillary_size, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    if not data:
        os._exit(0)
    packed = b"".join(data for _, _, data in messages)
    starts = range(0, len(packed), _DESCRIPTOR_BYTES)
    descriptors = [
        int.from_bytes(packed[at : at + _DESCRIPTOR_BYTES], sys.byteorder) for at in starts
    ]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return descriptors


def _fork(control: int) -> int:
    try:
        return os.fork()
    except OSError as error:
        say(control, f"refused guard {error.errno}")
        return -1


def _become_guard(descriptors: list[int], held: list[int]) -> None:
    """Be the guard of one tree. Never returns."""
    try:
        os.setsid()
        _close(held)
        *streams, control = descriptors
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        _close(streams)
        watch_over(control)
    finally:
        os._exit(0)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
