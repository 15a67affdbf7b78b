"""The guard of a program on a terminal."""

from __future__ import annotations

import errno
import os
import select
from contextlib import suppress

from podium.sandbox.confining.entry import fork_inside
from podium.sandbox.confining.holder import EnteringConfinement, HoldingConfinement
from podium.sandbox.confining.plan import BUBBLEWRAP, ConfinementPlan
from podium.sandbox.confining.tree_confinement import TreeConfinement
from podium.sandbox.guard.kernel import gain_no_privileges, signal
from podium.sandbox.guard.processes import ProcessEntry, descendants_of
from podium.sandbox.guard.program import limits_of, reset_signals, set_limits, take_terminal
from podium.sandbox.guard.trees import ReapedTree
from podium.sandbox.guard.watch import Guard, split_status

_STREAMS = (0, 1, 2)


class TerminalTree(ReapedTree):
    """A tree in front on a terminal that has no shell: who is stopped there would stay so."""

    def __init__(self) -> None:
        super().__init__()
        self._held = [os.dup(stream) for stream in _STREAMS]
        """The terminal, which the guard itself lets go of."""
        self._ending = False

    def take_streams(self) -> None:
        """Have the terminal as stdin, stdout and stderr."""
        for number, stream in zip(_STREAMS, self._held, strict=True):
            os.dup2(stream, number)

    def is_empty(self) -> bool:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if pid == 0:
                    return False
                if pid != self.first_pid:
                    continue
                if os.WIFSTOPPED(status):
                    self._go_on()
                else:
                    self.first_status = status
        except ChildProcessError:
            return True

    def members(self) -> list[ProcessEntry]:
        return [entry for entry in self._look() if entry.pid not in self.keepers]

    def ask_to_end(self) -> None:
        for entry in self._look():
            if entry.pid not in self.keepers:
                # What a terminal itself says when it goes. Interactive shells ignore SIGTERM.
                entry.send(signal.SIGHUP)
            entry.send(signal.SIGCONT)

    def kill(self) -> int:
        self._ending = True
        return super().kill()

    def _go_on(self) -> None:
        """As a shell's `fg` would."""
        if self._ending:
            return
        with suppress(OSError):  # then the terminal is gone, and the program is asked to end
            os.tcsetpgrp(self._held[0], self.first_pid)
        try:
            os.killpg(self.first_pid, signal.SIGCONT)
        except ProcessLookupError:
            os.kill(self.first_pid, signal.SIGCONT)


class TerminalGuard(Guard):
    """Puts the program in front on the terminal that this process has as its streams."""

    _tree: TerminalTree

    def _confinement_for(self, plan: ConfinementPlan) -> TreeConfinement:
        if plan.mechanism == BUBBLEWRAP:
            return HoldingConfinement(plan, self._control)
        return super()._confinement_for(plan)

    def _how_it_ended(self) -> tuple[int, int]:
        return split_status(self._tree.first_status)

    def _start(self) -> str:
        refused = super()._start()
        holding = self._confinement
        if refused or not isinstance(holding, HoldingConfinement):
            return refused
        refused = self._bring_up(holding) or self._enter(holding)
        if refused:
            self._tree.kill()
        return refused

    def _bring_up(self, holding: HoldingConfinement) -> str:
        """Answer the sandbox until it stands. Gives what went wrong, or nothing."""
        if self._calls is None:
            return "sandbox 0"
        poll = select.poll()
        poll.register(self._calls, select.POLLIN)
        while not holding.program_pid:
            if not any(event & select.POLLIN for _, event in poll.poll()):
                return f"sandbox {holding.failure}"
            holding.hear()
        # It never calls again, and the one call that waits gets no answer.
        self._poll.unregister(self._calls)
        return ""

    def _enter(self, holding: HoldingConfinement) -> str:
        plan = ConfinementPlan.decode(self._order.plan)
        keepers = {entry.pid for entry in descendants_of(os.getpid())}
        confinement = EnteringConfinement(plan, self._control, keepers)
        limits = limits_of(self._order)
        read_end, write_end = os.pipe()
        try:
            pid = fork_inside(
                holding.program_pid, lambda: self._become(confinement, limits, write_end)
            )
        except OSError as error:
            return f"sandbox {error.errno}"
        os.close(write_end)
        self._tree.first_pid = pid
        self._confinement = confinement
        self._calls = confinement.see_off(pid, read_end)
        if self._calls is not None:
            self._poll.register(self._calls, select.POLLIN)
        refused = os.read(read_end, 100).decode()
        os.close(read_end)
        return refused

    def _become(
        self, confinement: TreeConfinement, limits: list[tuple[int, int]], report: int
    ) -> None:
        """Turn this fork, which is inside, into the program. Never returns."""
        order, stage = self._order, "session"
        try:
            self._tree.take_streams()
            take_terminal()
            gain_no_privileges()
            reset_signals()
            stage = "cwd"
            os.chdir(order.cwd)
            stage = "limits"
            if self._group is not None:
                self._group.enter()
            stage = "sandbox"
            confinement.confine()
            stage = "limits"
            set_limits(limits)
            stage = "exec"
            os.execve(order.program, order.argv, order.env)  # noqa: S606 — as in `program`
        except BaseException as error:
            number = getattr(error, "errno", None) or errno.EINVAL
            os.write(report, f"{stage} {number}".encode())
        finally:
            os._exit(127)
