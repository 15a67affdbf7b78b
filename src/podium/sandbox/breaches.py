"""Limits that a tree went beyond, in words for the agent and for people."""

from __future__ import annotations

import errno
import os

from podium.sandbox.guard.kernel import signal
from podium.sandbox.guard.limits import MEMORY, PROCESSES, TEMPORARY
from podium.sandbox.guard.order import Order

_BY_SIGNAL = 128
_TOO_LARGE, _NO_SPACE = (os.strerror(code).encode() for code in (errno.EFBIG, errno.ENOSPC))
_MEGABYTE = 1_000_000


def breaches_of(
    order: Order, beyond: int, exit_code: int, signum: int, told_by_it: bytes = b""
) -> tuple[str, ...]:
    """What the guard counted, and what the way a program ended and its own words tell of.

    -1: no such code or signal. A program that ended well has gone beyond nothing of its own.
    """
    failed = exit_code != 0
    told: list[str] = []
    if beyond & PROCESSES:
        told.append(f"stopped: more than {order.processes} processes (`sandbox: processes:`)")
    if beyond & MEMORY:
        most = _megabytes(order.tree_memory_bytes)
        told.append(f"stopped: more than {most} MB of memory (`sandbox: memory_mb:`)")
    by_signal = signal.SIGXFSZ in (signum, exit_code - _BY_SIGNAL)
    if order.file_bytes and (by_signal or (failed and _TOO_LARGE in told_by_it)):
        most = _megabytes(order.file_bytes)
        told.append(f"stopped: a file grew to more than {most} MB (`sandbox: file_mb:`)")
    no_space = failed and _NO_SPACE in told_by_it and _has_room(order.cwd)
    if order.temporary_bytes and (beyond & TEMPORARY or no_space):
        most = _megabytes(order.temporary_bytes)
        told.append(
            f"temporary files filled the {most} MB they may take (`sandbox: temporary_mb:`)"
        )
    return tuple(told)


def _has_room(folder: str) -> bool:
    """Whether the disk itself is not what is full."""
    try:
        return os.statvfs(folder).f_bavail > 0
    except OSError:
        return False


def _megabytes(amount: int | None) -> str:
    return f"{(amount or 0) / _MEGABYTE:g}"
