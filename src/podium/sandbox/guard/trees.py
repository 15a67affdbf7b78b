"""A process tree that can be ended whole, in two strengths."""

from __future__ import annotations

import os
import time

from podium.sandbox.guard.kernel import adopt_orphans, signal
from podium.sandbox.guard.processes import ProcessEntry, descendants_of, freeze_and_kill

_FIRST_PAUSE_SECONDS = 0.001
_MAX_PAUSE_SECONDS = 0.1


class ReapedTree:
    """The tree of a subreaper: nothing gets out of it. Linux."""

    def __init__(self) -> None:
        adopt_orphans()
        self.first_pid = 0
        """Pid of the program; 0 until it is started."""
        self.first_status: int | None = None
        """The program's exit status, as `waitpid` tells it; None while it runs."""
        self.keepers: set[int] = set()
        """A sandbox's own processes beside the first: they end when its program has."""
        self.program_pid = 0
        """The program, where the first process is its sandbox."""

    def is_empty(self) -> bool:
        """Collect the dead; True when no process of the tree is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return False
                if pid == self.first_pid:
                    self.first_status = status
        except ChildProcessError:
            return True

    def members(self) -> list[ProcessEntry]:
        """Its processes, without those of a sandbox around them."""
        entries = self._look()
        if not self.keepers:
            return entries
        return [entry for entry in entries if entry.pid not in (self.first_pid, *self.keepers)]

    def ask_to_end(self) -> None:
        for entry in self._look():
            # A sandbox that ends takes its program with it, without time for last words.
            if not self.keepers or entry.pid not in (self.first_pid, *self.keepers):
                entry.send(signal.SIGTERM)
            entry.send(signal.SIGCONT)

    def kill(self) -> int:
        """End everything. Gives how many were alive beside the first process."""
        killed: set[tuple[int, int]] = set()
        pause_seconds = _FIRST_PAUSE_SECONDS
        while not self.is_empty():
            killed |= freeze_and_kill(self._look)
            time.sleep(pause_seconds)
            # The kernel may keep a process in a disk operation for a while; looking is not free.
            pause_seconds = min(pause_seconds * 1.5, _MAX_PAUSE_SECONDS)
        own = (self.first_pid, self.program_pid, *self.keepers)
        return sum(pid not in own for pid, _ in killed)

    def _look(self) -> list[ProcessEntry]:
        return descendants_of(os.getpid())


class GroupTree:
    """The tree as far as a process group reaches. What calls `setsid` gets out of it: macOS."""

    def __init__(self) -> None:
        self.first_pid = 0
        self.first_status: int | None = None
        self.keepers: set[int] = set()
        self.program_pid = 0

    def is_empty(self) -> bool:
        if self.first_pid == 0:
            return True
        if self.first_status is None:
            pid, status = os.waitpid(self.first_pid, os.WNOHANG)
            if pid == 0:
                return False
            self.first_status = status
        return not self._signal_group(0)

    def members(self) -> list[ProcessEntry]:
        """Nobody tells which these are."""
        return []

    def ask_to_end(self) -> None:
        self._signal_group(signal.SIGTERM)
        self._signal_group(signal.SIGCONT)

    def kill(self) -> int:
        """End the group. One stands for any number of survivors, which cannot be counted."""
        outlived = self.first_status is not None and not self.is_empty()
        while not self.is_empty():
            self._signal_group(signal.SIGKILL)
            time.sleep(_FIRST_PAUSE_SECONDS)
        return int(outlived)

    def _signal_group(self, signum: int) -> bool:
        try:
            os.killpg(self.first_pid, signum)
        except ProcessLookupError:
            return False
        except PermissionError:
            return False  # macOS: only zombies are left in the group
        return True
