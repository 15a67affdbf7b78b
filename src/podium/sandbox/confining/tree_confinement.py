"""The guard's side of a confined tree: puts the fork under its rules and answers its calls."""

from __future__ import annotations

import os
import select

from podium.sandbox.confining import child
from podium.sandbox.confining.devices import hold_devices
from podium.sandbox.confining.namespaces import (
    listen_inside,
    receive_descriptors,
    send_descriptors,
)
from podium.sandbox.confining.plan import BUBBLEWRAP, ConfinementPlan
from podium.sandbox.confining.supervisor import SyscallSupervisor
from podium.sandbox.guard.processes import entry_of, status_of

TYPE_CHECKING = False  # what a type checker takes for True; `typing` itself loads too slowly
if TYPE_CHECKING:
    import socket
else:
    # `socket` pulls in `enum` and `selectors`.
    import _socket as socket


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
        """Lay the rules on this process. From here on its execs wait for the guard."""
        self._ours.close()
        child.confine(self._plan, self._theirs)
        self._theirs.close()

    def command(self, program: str, argv: list[str], env: dict[str, str]) -> child.Command:
        """The command to execute so that the program runs confined."""
        return child.command(self._plan, program, argv, env)

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
