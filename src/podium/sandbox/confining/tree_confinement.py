"""The guard's side of a confined tree: puts the fork under its rules and answers its calls."""

from __future__ import annotations

import ctypes
import os
import select

from podium.sandbox.confining import landlock, seccomp
from podium.sandbox.confining.execs import ExecRequest
from podium.sandbox.confining.namespaces import (
    hold_devices,
    listen_inside,
    receive_descriptors,
    send_descriptors,
)
from podium.sandbox.confining.notices import SyscallNotice
from podium.sandbox.confining.plan import BUBBLEWRAP, ConfinementPlan
from podium.sandbox.confining.supervisor import STAYS, SyscallSupervisor
from podium.sandbox.confining.syscalls import LIBC, number_of
from podium.sandbox.guard.processes import entry_of, status_of

TYPE_CHECKING = False  # what a type checker takes for True; `typing` itself loads too slowly
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
else:
    # `socket` pulls in `enum` and `selectors`.
    import _socket as socket

_CAPABILITY_VERSION_3 = 0x20080522
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 47, 4
_MAX_CAPABILITIES = 64


def _drop_capabilities() -> None:
    """Make root an owner of files and nothing more. Who is not root has nothing to lose."""
    zero = ctypes.c_ulong(0)
    for capability in range(_MAX_CAPABILITIES):
        LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), zero, zero, zero)
    LIBC.prctl(_PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL), zero, zero, zero)
    header = _CAPABILITY_VERSION_3.to_bytes(4, "little") + bytes(4)
    if LIBC.syscall(ctypes.c_long(number_of("capset")), header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "cannot drop capabilities")


class TreeConfinement:
    """Confines one tree. Made before the fork; both sides hold it then."""

    def __init__(self, plan: ConfinementPlan, control: int) -> None:
        """`control` is the guard's line to Podium."""
        self._plan = plan
        self._control = control
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._supervisor: SyscallSupervisor | None = None
        self._program: int | None = None
        self.keepers: set[int] = set()
        """Processes that belong to the sandbox itself: they end when the program has."""
        self.temporary: list[int] = []
        """Descriptors of the folders in memory that the program was given."""

    # In the fork.

    def confine(self) -> None:
        """Lay on this process what all that it becomes and starts will be held by.

        `no_new_privs` must have been set. The listener for guarded calls goes to the guard; from here
        on every exec waits for the guard. Raises `OSError` when anything is missing.
        """
        self._ours.close()
        plan = self._plan
        if plan.mechanism == BUBBLEWRAP:
            if plan.scoped:
                landlock.keep_to_own_processes()
            rules = seccomp.mounted(plan.judged_sockets)
        else:
            _drop_capabilities()
            landlock.restrict(plan.readable, plan.writable)
            rules = seccomp.unmounted(plan.network_open)
        listener = seccomp.install(rules)
        send_descriptors(self._theirs, b"listener", [listener])
        os.close(listener)
        self._theirs.close()

    def command(
        self, program: str, argv: list[str], env: dict[str, str]
    ) -> tuple[str, list[str], dict[str, str]]:
        """The program, arguments and variables to execute: bubblewrap with its options, or the program itself.

        The options hold the program's variables: they stay out of the process table, and of bubblewrap.
        """
        plan = self._plan
        if plan.mechanism != BUBBLEWRAP:
            return program, argv, env
        data = b"\0".join(os.fsencode(option) for option in plan.options)
        file = os.memfd_create("options", 0)
        os.write(file, data)
        os.lseek(file, 0, os.SEEK_SET)
        wrapper_argv = ["bwrap", "--args", str(file), "--", program, *argv[1:]]
        return plan.bubblewrap, wrapper_argv, env

    @property
    def changes_folder(self) -> bool:
        """Tell whether the program's folder is there only once the fork became something else."""
        return self._plan.mechanism == BUBBLEWRAP

    # In the guard.

    @property
    def program_pid(self) -> int:
        """0 as long as the program is not being executed."""
        return self._supervisor.program_pid if self._supervisor else 0

    @property
    def failure(self) -> int:
        """The errno for which the program could not be executed; 0 when that is not known."""
        return self._supervisor.failure if self._supervisor else 0

    def see_off(self, pid: int, report: int) -> int | None:
        """Answer the fork's calls until it became something else, or reported why it cannot.

        Gives the descriptor on which calls are to be heard from then on.
        """
        self._theirs.close()
        _, descriptors = receive_descriptors(self._ours, 1)
        self._ours.close()
        if not descriptors:
            return None
        self._supervisor = self._supervisor_for(descriptors[0], pid)
        poll = select.poll()
        for descriptor in (descriptors[0], report):
            poll.register(descriptor, select.POLLIN)
        while not any(descriptor == report for descriptor, _ in poll.poll()):
            self._supervisor.hear()
        return descriptors[0]

    def hear(self) -> list[str]:
        """Answer a call. Gives what Podium is to be told."""
        if self._supervisor is None:
            return []
        self._supervisor.hear()
        return self.untold()

    def untold(self) -> list[str]:
        """Refusals that Podium was not told of yet."""
        if self._supervisor is None:
            return []
        untold_lines, self._supervisor.untold = self._supervisor.untold, []
        return untold_lines

    def _supervisor_for(self, listener: int, pid: int) -> SyscallSupervisor:
        return SyscallSupervisor(listener, self._plan, pid, self._on_program)

    @property
    def program_status(self) -> int | None:
        """The program's status, as `waitpid` would tell; None where the kernel does not say (before 6.15)."""
        return None if self._program is None else status_of(self._program)

    def _open_temporary(self, pid: int) -> None:
        """Held until the guard ends: their figures can be read when the tree and its mounts are gone."""
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        self.temporary = [
            os.open(f"/proc/{pid}/root{path}", flags) for path in self._plan.temporary
        ]

    def _on_program(self, pid: int) -> None:
        """Everything around the program stands, and it waits: open its network for what may come in."""
        if self._plan.mechanism != BUBBLEWRAP:
            return
        self._program = os.pidfd_open(pid)
        self._open_temporary(pid)
        if os.geteuid() == 0:
            hold_devices(pid)
        entry = entry_of(pid)
        self.keepers = {entry.parent} if entry else set()
        if self._plan.ports:
            descriptors = listen_inside(pid, self._plan.ports)
            line = socket.socket(fileno=os.dup(self._control))
            ports = " ".join(map(str, self._plan.ports))
            send_descriptors(line, f"listening {ports}\n".encode(), descriptors)
            line.close()
            for descriptor in descriptors:
                os.close(descriptor)


# Bubblewrap is one of the processes that a terminal's keys would signal, and it dies of Ctrl-C with all that it holds.
# So for a program of a terminal it runs apart from the terminal, its own program waits for ever at the moment of its
# start, and what belongs to the terminal is forked by the guard and enters.


class _HoldingSupervisor(SyscallSupervisor):
    """Keeps the sandbox's own program at its start."""

    def _start_program(self, notice: SyscallNotice, request: ExecRequest) -> int | None:
        try:
            self._on_program(notice.pid)
        except OSError as error:
            self.failure = error.errno or 1
            return self.failure
        self.program_pid = notice.pid
        return STAYS


class HoldingConfinement(TreeConfinement):
    """Brings a sandbox up. Its `program_pid` is then a process that has all its namespaces, and waits."""

    def _supervisor_for(self, listener: int, pid: int) -> SyscallSupervisor:
        return _HoldingSupervisor(listener, self._plan, pid, self._on_program)


class _EnteringSupervisor(SyscallSupervisor):
    """Hears a program that is in the sandbox already when it is started."""

    def __init__(
        self,
        listener: int,
        plan: ConfinementPlan,
        first_pid: int,
        on_program: Callable[[int], None],
    ) -> None:
        super().__init__(listener, plan, first_pid, on_program)
        self._wrapped = True


class EnteringConfinement(TreeConfinement):
    """Holds a program that was put into a sandbox to the same rules as one that the sandbox started."""

    def __init__(self, plan: ConfinementPlan, control: int, keepers: set[int]) -> None:
        """`keepers` are the processes of the sandbox that stands around it."""
        super().__init__(plan, control)
        self.keepers = keepers

    def confine(self) -> None:
        _drop_capabilities()
        super().confine()

    def _supervisor_for(self, listener: int, pid: int) -> SyscallSupervisor:
        return _EnteringSupervisor(listener, self._plan, pid, self._on_program)

    def _on_program(self, pid: int) -> None:
        """The sandbox stands; all that is left is to know its files."""
        self._open_temporary(pid)
