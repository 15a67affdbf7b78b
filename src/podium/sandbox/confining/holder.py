"""A sandbox that only stands: a program that belongs to a terminal is put into it from outside.

Bubblewrap is one of the processes that a terminal's keys would signal, and it dies of Ctrl-C with all that it holds. So
it runs apart from the terminal. Its own program waits for ever at the moment of its start, when everything around it
stands, and what belongs to the terminal is forked by the guard and enters.
"""

from __future__ import annotations

from podium.sandbox.confining import child
from podium.sandbox.confining.execs import ExecRequest
from podium.sandbox.confining.notices import SyscallNotice
from podium.sandbox.confining.plan import ConfinementPlan
from podium.sandbox.confining.supervisor import STAYS, SyscallSupervisor
from podium.sandbox.confining.tree_confinement import TreeConfinement

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from collections.abc import Callable


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
        child.drop_capabilities()
        super().confine()

    def _supervisor_for(self, listener: int, pid: int) -> SyscallSupervisor:
        return _EnteringSupervisor(listener, self._plan, pid, self._on_program)

    def _on_program(self, pid: int) -> None:
        """The sandbox stands; all that is left is to know its files."""
        self._open_temporary(pid)
