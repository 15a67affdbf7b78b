"""Limits that a tree went beyond, in words for the agent and for people."""

from __future__ import annotations

from podium.sandbox.guard.kernel import signal
from podium.sandbox.guard.limits import MEMORY, PROCESSES, TEMPORARY_FULL, TEMPORARY_TOTAL
from podium.sandbox.guard.order import GuardOrder

_BY_SIGNAL = 128
_MEGABYTE = 1_000_000


def breaches_of(order: GuardOrder, beyond: int, exit_code: int, signum: int) -> tuple[str, ...]:
    """The limits that were broken: by the guard's measures, and by the signal with which the kernel ends a program whose file grows too large.

    -1: no such code or signal. What a program prints counts for nothing: it may be about anything.
    """
    breaches: list[str] = []
    if beyond & PROCESSES:
        breaches.append(f"stopped: more than {order.processes} processes (`sandbox: processes:`)")
    if beyond & MEMORY:
        most = _megabytes(order.tree_memory_bytes)
        breaches.append(f"stopped: more than {most} MB of memory (`sandbox: memory_mb:`)")
    if order.file_bytes and signal.SIGXFSZ in (signum, exit_code - _BY_SIGNAL):
        most = _megabytes(order.file_bytes)
        breaches.append(f"stopped: a file grew to more than {most} MB (`sandbox: file_mb:`)")
    most = _megabytes(order.temporary_bytes)
    if beyond & TEMPORARY_TOTAL:
        breaches.append(
            f"stopped: more than {most} MB of temporary files (`sandbox: temporary_mb:`)"
        )
    elif beyond & TEMPORARY_FULL:
        breaches.append(
            f"temporary files filled the {most} MB they may take (`sandbox: temporary_mb:`)"
        )
    return tuple(breaches)


def _megabytes(amount: int | None) -> str:
    return f"{(amount or 0) / _MEGABYTE:g}"
