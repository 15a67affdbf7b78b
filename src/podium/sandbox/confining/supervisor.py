"""Answering the guarded system calls of one tree, in its guard."""

from __future__ import annotations

import errno

from podium.sandbox.confining.connection import ConnectBroker
from podium.sandbox.confining.execs import ExecJudge, ExecRequest, cannot_start
from podium.sandbox.confining.file_calls import change_metadata, give_other_end
from podium.sandbox.confining.notices import (
    SyscallNotice,
    answer,
    let_go_on,
    receive,
    still_waits,
)
from podium.sandbox.confining.plan import BUBBLEWRAP, ConfinementPlan
from podium.sandbox.confining.seccomp import EXECS, METADATA

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from collections.abc import Callable

STAYS = -1
"""Not an answer: the call goes on waiting."""
_MAX_LINES = 20
_MAX_LINE_CHARACTERS = 300


class SyscallSupervisor:
    """Hears the calls of a tree and answers them. Whatever goes wrong, the call is refused."""

    def __init__(
        self,
        listener: int,
        plan: ConfinementPlan,
        first_pid: int,
        on_program: Callable[[int], None],
    ) -> None:
        """`first_pid` is the process that the guard forked: bubblewrap, or the program itself.

        `on_program` is called with the program's pid while it waits to be executed.
        """
        self.listener = listener
        self.program_pid = 0
        """Pid of the program as it is seen here; 0 until it is about to be executed."""
        self.failure = 0
        """The errno for which the program could not be executed; 0 when it could."""
        self.untold: list[str] = []
        """Refusals that nobody heard of yet; who tells of them empties the list."""
        self._noted: set[str] = set()
        self._plan = plan
        self._first_pid = first_pid
        self._on_program = on_program
        self._wrapped = plan.mechanism != BUBBLEWRAP
        rules = plan.exec_rules()
        self._judge = None if rules is None else ExecJudge(rules)
        self._connections = ConnectBroker(
            plan.network_open, plan.ports, plan.sockets, plan.writable
        )

    def hear(self) -> None:
        """Answer the call that waits now, if one does."""
        notice = receive(self.listener)
        if notice is None:
            return
        try:
            if notice.name == "connect":
                self._on_connect(notice)
                return
            if notice.name == "ioctl":
                self._on_terminal(notice)
                return
            failure = self._judged(notice)
        except Exception as error:
            failure = getattr(error, "errno", None) or errno.EACCES
        finally:
            notice.close()
        if failure == STAYS:
            return
        if failure is None:
            let_go_on(self.listener, notice)
        else:
            answer(self.listener, notice, failure)

    def _on_connect(self, notice: SyscallNotice) -> None:
        if still_waits(self.listener, notice):
            self._connections.perform(notice, lambda why: answer(self.listener, notice, why))

    def _on_terminal(self, notice: SyscallNotice) -> None:
        if still_waits(self.listener, notice):
            give_other_end(self.listener, notice)

    def _judged(self, notice: SyscallNotice) -> int | None:
        """The errno of the answer, 0 for what was done here, None when the kernel shall go on."""
        if notice.name in EXECS:
            return self._on_exec(notice)
        # Between the look into its memory and now the caller may have gone and its pid been taken.
        if not still_waits(self.listener, notice):
            return errno.EINTR
        if notice.name in METADATA:
            return change_metadata(
                notice, self._plan.writable, lambda: still_waits(self.listener, notice)
            )
        return errno.EACCES

    def _on_exec(self, notice: SyscallNotice) -> int | None:
        if not self._wrapped and notice.pid == self._first_pid:
            self._wrapped = True  # bubblewrap itself: no program of the tree has this pid
            return None
        request = ExecRequest(notice)
        if not still_waits(self.listener, notice):
            return errno.EINTR
        if not self.program_pid:
            return self._start_program(notice, request)
        return errno.EACCES if self._is_refused(request) else None

    def _is_refused(self, request: ExecRequest) -> bool:
        reason = self._judge.reason(request) if self._judge else ""
        if reason:
            self._note_refusal(request, reason)
        return bool(reason)

    def _start_program(self, notice: SyscallNotice, request: ExecRequest) -> int | None:
        """The first program of the tree is judged as all are: its words may be an agent's."""
        self.failure = cannot_start(request)
        if self.failure:
            return self.failure
        try:
            if self._is_refused(request):
                self.failure = errno.EACCES
                return self.failure
            self._on_program(notice.pid)
        except OSError as error:
            self.failure = error.errno or errno.EIO
            return self.failure
        self.program_pid = notice.pid
        return None

    def _note_refusal(self, request: ExecRequest, reason: str) -> None:
        if len(self._noted) >= _MAX_LINES:
            return
        command_line = " ".join(request.argv or [request.path])
        line = f"{command_line[:_MAX_LINE_CHARACTERS]}: {reason}"
        line = "".join(char if char.isprintable() else "?" for char in line)
        if line not in self._noted:
            # Shells ask once for every folder of the search path.
            self._noted.add(line)
            self.untold.append(line)
