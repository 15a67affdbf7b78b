"""The guard of one tree: becomes the program in a fork, and watches over the tree until it is gone."""

from __future__ import annotations

import errno
import os
import resource
import select
import time

from podium.sandbox.confining.plan import ConfinementPlan
from podium.sandbox.confining.tree_confinement import TreeConfinement
from podium.sandbox.guard.limits import TASKS_PER_PROCESS, ControlGroup, TreeWatch
from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.guard.processes import (
    ON_LINUX,
    GroupTree,
    ReapedTree,
    all_entries,
    die_with_parent,
    entry_of,
    gain_no_privileges,
    signal,
)

_BY_SIGNAL = 128


class Guard:
    """Starts the program, waits for its end or a reason to end it, and leaves nothing behind."""

    def __init__(self, control: int, order: GuardOrder, tree: ReapedTree | GroupTree) -> None:
        self._control = control
        self._order = order
        self._tree = tree
        self._poll = select.poll()
        self._kill_at: float | None = None
        self._deadline: float | None = None
        self._timed_out = False
        self._asked = False
        self._group = ControlGroup.make(
            f"podium-{os.getpid()}", order.processes, order.tree_memory_bytes
        )
        self._limits = TreeWatch(order, tree.members, self._group)
        plan = ConfinementPlan.decode(order.plan) if order.plan else None
        self._confinement = self._confinement_for(plan) if plan else None
        self._calls: int | None = None
        self._started = False
        self._wake = self._watch()

    def run(self) -> None:
        try:
            self._run()
        finally:
            if self._group is not None:
                self._group.close()

    def _run(self) -> None:
        refused = self._start()
        if refused:
            for refusal in self._confinement.untold() if self._confinement else ():
                say(self._control, f"stopped {refusal}")
            say(self._control, f"refused {refused}")
            return
        self._say_started()
        survivors = self._wait()
        if (
            self._confinement is not None
            and not self._confinement.program_pid
            and not self._timed_out
        ):
            failure = self._confinement.failure
            say(self._control, f"refused exec {failure}" if failure else "refused sandbox 0")
            return
        exit_code, signum = self._how_it_ended()
        self._limits.last_look()
        fields = (exit_code, signum, int(self._timed_out), survivors, self._limits.breaches)
        say(self._control, "ended " + " ".join(map(str, fields)))

    def _confinement_for(self, plan: ConfinementPlan) -> TreeConfinement:
        return TreeConfinement(plan, self._control)

    def _how_it_ended(self) -> tuple[int, int]:
        exit_code, signum = split_status(self._tree.first_status)
        status = self._confinement.program_status if self._confinement else None
        if status is not None and exit_code > _BY_SIGNAL:
            return split_status(status)
        if self._asked and self._tree.keepers and exit_code > _BY_SIGNAL:
            # A sandbox tells of its program's end by a signal as shells do, and it was us who sent one.
            return -1, exit_code - _BY_SIGNAL
        return exit_code, signum

    def _watch(self) -> int:
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        os.set_blocking(write_end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write_end)
        for fd in (read_end, self._control):
            self._poll.register(fd, select.POLLIN)
        if hasattr(os, "pidfd_open"):
            # The socket stays open while a forked copy of Podium holds it; this does not.
            try:
                self._poll.register(os.pidfd_open(self._order.owner_pid), select.POLLIN)
            except OSError as error:
                if error.errno == errno.ESRCH:
                    self._kill_at = 0.0
        return read_end

    def _start(self) -> str:
        """Fork and exec. Gives the stage and errno of what went wrong, or nothing."""
        read_end, write_end = os.pipe()
        guard_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            become(self._order, write_end, guard_pid, self._confinement, self._group)
        self._tree.first_pid = pid
        os.close(write_end)
        _let_go_of_stdio()
        if self._confinement is not None:
            self._calls = self._confinement.see_off(pid, read_end)
            if self._calls is not None:
                self._poll.register(self._calls, select.POLLIN)
        refused = os.read(read_end, 100).decode()
        os.close(read_end)
        if refused:
            os.waitpid(pid, 0)
        if self._order.seconds is not None:
            self._deadline = time.monotonic() + self._order.seconds
        return refused

    def _wait(self) -> int:
        while not self._tree.is_empty():
            if self._order.leaves_server and self._tree.first_status == 0:
                return 0
            now = time.monotonic()
            if self._tree.first_status is not None and self._kill_at is None:
                self._kill_at = now + self._order.linger_seconds
            self._check_limits(now)
            if self._kill_at is not None and now >= self._kill_at:
                return self._tree.kill()
            self._sleep(now)
        return 0

    def _check_limits(self, now: float) -> None:
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            self._timed_out = True
            self._end(self._order.grace_seconds)
        if not self._started or not self._limits.is_needed or self._is_doomed(now):
            return
        if self._limits.is_beyond(now, self._tree.program_pid or self._tree.first_pid):
            self._kill_at = now

    def _is_doomed(self, now: float) -> bool:
        return self._kill_at is not None and now >= self._kill_at

    def _sleep(self, now: float) -> None:
        deadlines = [
            deadline for deadline in (self._kill_at, self._deadline) if deadline is not None
        ]
        if self._limits.is_needed and self._started:
            deadlines.append(self._limits.next_check)
        # Rounded up: waking a moment too early would only mean another round.
        timeout = int(max(0.0, min(deadlines) - now) * 1000) + 1 if deadlines else None
        for fd, event in self._poll.poll(timeout):
            if fd == self._control:
                self._hear()
            elif fd == self._calls:
                self._answer(event)
            elif fd == self._wake:
                os.read(fd, 512)
            else:
                self._podium_is_gone(fd)

    def _answer(self, event: int) -> None:
        """A confined tree made a call that waits for an answer, or nobody of it is left."""
        if self._confinement is None or not event & select.POLLIN:
            self._poll.unregister(self._calls or 0)
            return
        for refusal in self._confinement.hear():
            say(self._control, f"stopped {refusal}")
        self._say_started()

    def _say_started(self) -> None:
        """Once, when the program runs: inside a sandbox that is later than the first process."""
        if self._confinement is not None:
            self._tree.program_pid = self._confinement.program_pid
            self._tree.keepers = self._confinement.keepers
            self._limits.temporary = self._confinement.temporary
        pid = self._tree.program_pid if self._confinement is not None else self._tree.first_pid
        if pid and not self._started:
            self._started = True
            say(self._control, f"started {pid}")

    def _hear(self) -> None:
        try:
            message = os.read(self._control, 4096)
        except OSError:
            message = b""
        if not message:
            self._podium_is_gone(self._control)
        for line in message.decode().splitlines():
            self._end(float(line.removeprefix("end ")))

    def _podium_is_gone(self, fd: int) -> None:
        self._poll.unregister(fd)
        if self._order.farewell_seconds:
            self._end(self._order.farewell_seconds)
        else:
            self._kill_at = 0.0

    def _end(self, grace_seconds: float) -> None:
        self._asked = True
        self._tree.ask_to_end()
        kill_at = time.monotonic() + grace_seconds
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)


def _let_go_of_stdio() -> None:
    """Keep none of the program's pipes open, so that their ends are seen."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def say(control: int, line: str) -> None:
    """Tell Podium, if it is still there."""
    try:
        os.write(control, line.encode() + b"\n")
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ECONNRESET):
            raise


def split_status(status: int | None) -> tuple[int, int]:
    """Exit code and signal, -1 for the one that does not apply."""
    if status is None:
        return -1, int(signal.SIGKILL)
    if os.WIFSIGNALED(status):
        return -1, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), -1


def leave_signals_to_podium() -> None:
    """The terminal's signals are Podium's business; it says over the socket what is to be done."""
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN)


def watch_over(
    control: int, kind: type[Guard] = Guard, tree: ReapedTree | GroupTree | None = None
) -> None:
    """Guard one tree as ordered over this socket. Says first who this is, for when it must be killed."""
    me = entry_of(os.getpid())
    say(control, f"guard {os.getpid()} {me.start if me else 0}")
    order = GuardOrder.read_from(control)
    if order is not None:
        _guard(control, order, kind, tree or (ReapedTree() if ON_LINUX else GroupTree()))


def _guard(
    control: int, order: GuardOrder, kind: type[Guard], tree: ReapedTree | GroupTree
) -> None:
    try:
        kind(control, order, tree).run()
    except BaseException as error:
        tree.kill()
        say(control, f"broke {error!r}")


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
