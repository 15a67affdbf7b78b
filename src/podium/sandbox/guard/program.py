"""The last moments of a fork before it becomes the program."""

from __future__ import annotations

import errno
import os
import resource

from podium.sandbox.confining.tree_confinement import TreeConfinement
from podium.sandbox.guard.cgroups import TASKS_PER_PROCESS, ControlGroup
from podium.sandbox.guard.kernel import ON_LINUX, die_with_parent, gain_no_privileges, signal
from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.guard.processes import all_entries

_OF_A_SANDBOX = 3
"""Processes that a sandbox needs beside its program's."""


def become(
    order: GuardOrder,
    report: int,
    guard_pid: int,
    confinement: TreeConfinement | None,
    group: ControlGroup | None = None,
) -> None:
    """Turn this fork into the program, or into what confines it. Never returns."""
    stage = "session"
    held = confinement is not None and confinement.changes_folder
    try:
        if order.on_terminal and not held:
            take_terminal()
        else:
            os.setsid()
        if ON_LINUX:
            die_with_parent()
            if os.getppid() != guard_pid:
                os._exit(127)
            # A descendant that could become another user could not be ended any more.
            gain_no_privileges()
        reset_signals()
        if group is not None:
            stage = "limits"
            group.enter()
        stage = "cwd"
        os.chdir("/" if held else order.cwd)
        program, argv, env = order.program, order.argv, order.env
        if confinement:
            stage = "sandbox"
            # A sandbox that only stands around a program on a terminal gets none of its variables.
            child_env = {} if order.on_terminal and held else env
            program, argv, env = confinement.command(program, argv, child_env)
            confinement.confine()
        stage = "limits"
        set_limits(limits_of(order))
        stage = "exec"
        os.execve(program, argv, env)  # noqa: S606 — the one place that does
    except BaseException as error:
        number = getattr(error, "errno", None) or errno.EINVAL
        os.write(report, f"{stage} {number}".encode())
    finally:
        os._exit(127)


def take_terminal() -> None:
    """Lead a group of its own that the terminal, on stdin, types to. SIGTTOU must be ignored."""
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())


def limits_of(order: GuardOrder) -> list[tuple[int, int]]:
    """Kinds of limits and amounts. Counts the processes of this user, so it must be asked outside of a sandbox."""
    limits: list[tuple[int, int]] = []
    if order.file_bytes is not None:
        limits.append((resource.RLIMIT_FSIZE, order.file_bytes))
    if order.processes is not None and os.geteuid() != 0:
        # A bound for what the guard cannot count in time. The kernel counts all threads of the user, so those
        # of others come on top; root it does not bind.
        own = order.processes * TASKS_PER_PROCESS + (_OF_A_SANDBOX if order.plan else 0)
        limits.append((resource.RLIMIT_NPROC, own + _threads_of_this_user()))
    if order.memory_bytes is not None:
        limits.append((resource.RLIMIT_AS, order.memory_bytes))
    return limits


def set_limits(limits: list[tuple[int, int]]) -> None:
    for kind, amount in limits:
        hard = resource.getrlimit(kind)[1]
        value = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(kind, (value, value))


def _threads_of_this_user() -> int:
    user = os.getuid()
    count = 0
    for entry in all_entries():
        try:
            count += entry.threads if os.stat(f"/proc/{entry.pid}").st_uid == user else 0  # noqa: PTH116
        except OSError:
            continue
    return count


def reset_signals() -> None:
    """Undo what Python and the guard set: an ignored signal stays ignored over exec."""
    signal.set_wakeup_fd(-1)
    for signum in range(1, signal.NSIG):
        if signum in (signal.SIGKILL, signal.SIGSTOP):
            continue
        try:
            signal.signal(signum, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
