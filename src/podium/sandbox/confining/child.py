"""The last moments of the guard's fork when what it becomes is to be confined."""

from __future__ import annotations

import ctypes
import os

from podium.sandbox.confining import filters, landlock, seccomp
from podium.sandbox.confining.namespaces import send_descriptors
from podium.sandbox.confining.plan import BUBBLEWRAP, ConfinementPlan
from podium.sandbox.confining.syscalls import LIBC, number_of

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    import socket

_CAPABILITY_VERSION_3 = 0x20080522
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 47, 4
_MAX_CAPABILITIES = 64


def confine(plan: ConfinementPlan, line: socket.socket) -> None:
    """Lay on this process what all that it becomes and starts will be held by.

    `no_new_privs` must have been set. The listener for guarded calls goes to the guard over `line`;
    from here on every exec waits for the guard. Raises `OSError` when anything is not to be had.
    """
    if plan.mechanism == BUBBLEWRAP:
        if plan.scoped:
            landlock.keep_to_own_processes()
        rules = filters.mounted(plan.judged_sockets)
    else:
        drop_capabilities()
        landlock.restrict(plan.readable, plan.writable)
        rules = filters.unmounted(plan.network_open)
    listener = seccomp.install(rules)
    send_descriptors(line, b"listener", [listener])
    os.close(listener)


Command = tuple[str, list[str], dict[str, str]]
"""A program for a fork to execute: program, arguments, variables."""


def command(plan: ConfinementPlan, program: str, argv: list[str], env: dict[str, str]) -> Command:
    """Bubblewrap with its options, or the program itself.

    The options hold the program's variables: they stay out of the process table, and of bubblewrap.
    """
    if plan.mechanism != BUBBLEWRAP:
        return program, argv, env
    data = b"\0".join(os.fsencode(option) for option in plan.options)
    file = os.memfd_create("options", 0)
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    wrapper_argv = ["bwrap", "--args", str(file), "--", program, *argv[1:]]
    return plan.bubblewrap, wrapper_argv, env


def drop_capabilities() -> None:
    """Make root an owner of files and nothing more. Who is not root has nothing to lose."""
    zero = ctypes.c_ulong(0)
    for capability in range(_MAX_CAPABILITIES):
        LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), zero, zero, zero)
    LIBC.prctl(_PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL), zero, zero, zero)
    header = _CAPABILITY_VERSION_3.to_bytes(4, "little") + bytes(4)
    if LIBC.syscall(ctypes.c_long(number_of("capset")), header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")
