"""Limits of a whole tree: counted by the guard, and held by a control group where there can be one."""

from __future__ import annotations

import os
import time

from podium.sandbox.guard.cgroups import ControlGroup
from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.guard.processes import ProcessEntry

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from collections.abc import Callable

PROCESSES, MEMORY, TEMPORARY_FULL, TEMPORARY_TOTAL = 1, 2, 4, 8
"""Limits that a tree went beyond, added up. Of temporary files: one folder is full, or all hold too much together."""

_SHORTEST_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 1.0
_LOOK_SHARE = 50
"""Between two looks so many times as long as one takes: two percent of a core at most."""


class TreeWatch:
    """Looks at one tree again and again. `look` gives its processes, without those of a sandbox around it."""

    def __init__(
        self, order: GuardOrder, look: Callable[[], list[ProcessEntry]], group: ControlGroup | None
    ) -> None:
        self._order = order
        self._look = look
        self._group = group
        self._newest = ""
        self._pids: list[int] = []
        self._next = 0.0
        self.breaches = 0
        self.temporary: list[int] = []
        """Descriptors of the tree's folders in memory, each of which can hold `temporary_bytes`."""

    @property
    def is_needed(self) -> bool:
        order = self._order
        return bool(order.processes or order.tree_memory_bytes or self.temporary)

    @property
    def next_check(self) -> float:
        """The time of the next look, by the monotonic clock."""
        return self._next

    def is_beyond(self, now: float, program_pid: int) -> bool:
        """Tell whether the tree has to be ended, as far as one look can tell. It is not looked at too often."""
        if now < self._next:
            return False
        began = time.monotonic()
        self._count(program_pid)
        self._weigh()
        self._look_at_files()
        took = time.monotonic() - began
        pause = min(max(took * _LOOK_SHARE, _SHORTEST_PAUSE_SECONDS), _MAX_PAUSE_SECONDS)
        self._next = now + pause
        return bool(self.breaches & (PROCESSES | MEMORY | TEMPORARY_TOTAL))

    def last_look(self) -> None:
        """The tree is gone: take down what the kernel has counted, and what its files still take."""
        self._look_at_files()
        if self._group is not None:
            self.breaches |= PROCESSES if self._group.was_crowded() else 0
            self.breaches |= MEMORY if self._group.ran_out_of_memory() else 0

    def _count(self, program_pid: int) -> None:
        newest = _newest_pid(program_pid)
        if newest and newest == self._newest:
            return  # nobody was forked since the last look
        self._newest = newest
        entries = self._look()
        self._pids = [entry.pid for entry in entries]
        most = self._order.processes
        if most and (len(entries) > most or (self._group and self._group.was_crowded())):
            self.breaches |= PROCESSES

    def _weigh(self) -> None:
        most = self._order.tree_memory_bytes
        if not most:
            return
        if self._group is not None:
            self.breaches |= MEMORY if self._group.ran_out_of_memory() else 0
        elif _private_bytes(self._pids) > most and _shared_out_bytes(self._pids) > most:
            self.breaches |= MEMORY

    def _look_at_files(self) -> None:
        most = self._order.temporary_bytes or 0
        used = blocks = 0
        for descriptor in self.temporary:
            figures = os.fstatvfs(descriptor)
            if figures.f_blocks != -(-most // figures.f_frsize):
                continue  # something else is mounted there
            blocks = figures.f_blocks
            used += blocks - figures.f_bfree
            self.breaches |= TEMPORARY_FULL if figures.f_bavail == 0 else 0
        self.breaches |= TEMPORARY_TOTAL if used > blocks else 0


def _newest_pid(program_pid: int) -> str:
    """The last pid that was given, in the tree's own namespace where it has one. Empty: it cannot be told."""
    for root in (f"/proc/{program_pid}/root", ""):
        try:
            with open(f"{root}/proc/loadavg", "rb") as file:  # noqa: PTH123 — pathlib loads too slowly
                return root + file.read().split()[-1].decode()
        except (OSError, IndexError):
            continue
    return ""


def _private_bytes(pids: list[int]) -> int:
    """Bytes that these have in memory that are no file's. Pages that several share are counted for each."""
    return sum(_summed(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:")) for pid in pids)


def _shared_out_bytes(pids: list[int]) -> int:
    """The same with shared pages divided among those that share them. Exact, and slow."""
    return sum(_summed(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")) for pid in pids)


def _summed(path: str, names: tuple[bytes, ...]) -> int:
    """Bytes in these lines of a file of the kernel's; none where the process is gone."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 — as above
            lines = file.read().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(names))
