"""Sockets in folders that nobody else can reach into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.core.errors import BadInput, LockHeld
from podium.platform import make_private_folder
from podium.platform.file_lock import take_file_lock

MAX_SOCKET_BYTES = 100
"""The kernel takes no path of a socket beyond 103 bytes on macOS and 107 on Linux."""


def refuse_long(socket: Path) -> None:
    length = len(os.fsencode(socket.absolute()))
    if length > MAX_SOCKET_BYTES:
        raise BadInput(
            f"the path of socket {str(socket)!r} has {length} bytes, and the maximum is "
            f"{MAX_SOCKET_BYTES}; choose a shorter folder"
        )


def make_private(folder: Path) -> None:
    """Have the folder, for this user alone. Raises `BadInput` for one that others can reach into.

    They could have a server of theirs there, and hear what is said.
    """
    make_private_folder(folder)
    facts = folder.stat()
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise BadInput(
            f"{str(folder)!r} is accessible to other users; `chmod 700` it if it is yours, or choose another folder"
        )


@contextmanager
def sole_server(socket: Path) -> Iterator[Path]:
    """A path to listen at, for this process alone, free of what an earlier one left. Removed afterwards.

    The mode of the folder is the check of who connects: the kernel lets nobody else pass it. Raises `LockHeld` when
    another process listens there, `BadInput` for a path that is too long or open to others.
    """
    socket = socket.absolute()
    refuse_long(socket)
    make_private(socket.parent)
    try:
        handle = take_file_lock(socket.with_name(f"{socket.name}.lock"))
    except BlockingIOError:
        raise LockHeld(
            f"another Podium is listening at {str(socket)!r}; use it, or stop it first"
        ) from None
    try:
        socket.unlink(missing_ok=True)
        try:
            yield socket
        finally:
            socket.unlink(missing_ok=True)
    finally:
        os.close(handle)
