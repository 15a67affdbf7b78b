"""Limits of a whole tree: counted by the guard, held by a control group (v2) where there can be one, and told in text."""

from __future__ import annotations

import os
import time

from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.guard.processes import ProcessEntry, signal

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = "/sys/fs/cgroup"
OWN = "/proc/self/cgroup"
_NEEDED = {"pids", "memory"}
TASKS_PER_PROCESS = 4
"""The kernel counts threads, and most programs have several."""


class ControlGroup:
    """Holds what enters it, and all that this starts, to limits. Made and removed by the guard."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._entrance = os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    @classmethod
    def make(
        cls, name: str, processes: int | None, memory_bytes: int | None, root: str = ROOT
    ) -> ControlGroup | None:
        """A group with these limits. None: there are none to set, or nobody lets us make one."""
        if not processes and not memory_bytes:
            return None
        for parent in parents(root):
            path = f"{parent}/{name}"
            _remove(path)  # left by a guard that was killed
            try:
                os.mkdir(path)  # noqa: PTH102 — pathlib loads too slowly
            except OSError:
                continue
            try:
                group = cls(path)
                group.hold(processes, memory_bytes)
            except OSError:
                _remove(path)
            else:
                return group
        return None

    def hold(self, processes: int | None, memory_bytes: int | None) -> None:
        """Set its limits."""
        if processes:
            _write(f"{self._path}/pids.max", str(processes * TASKS_PER_PROCESS))
        if memory_bytes:
            _write(f"{self._path}/memory.max", str(memory_bytes))
            _write(f"{self._path}/memory.oom.group", "1")

    def enter(self) -> None:
        """Put this process into it. Works from inside other mounts too."""
        os.write(self._entrance, b"0")

    def was_crowded(self) -> bool:
        """Tell whether a fork was refused."""
        return _count_of(f"{self._path}/pids.events", b"max") > 0

    def ran_out_of_memory(self) -> bool:
        """Tell whether the kernel ended something for want of memory."""
        return _count_of(f"{self._path}/memory.events", b"oom_kill") > 0

    def close(self) -> None:
        """The tree is gone, and so is the group."""
        os.close(self._entrance)
        _remove(self._path)


def can_make_groups(root: str = ROOT) -> bool:
    """Tell whether limits are held by the kernel here, and not only by looking. Tries it."""
    group = ControlGroup.make(f"podium-probe-{os.getpid()}", 1, None, root)
    if group is None:
        return False
    group.close()
    return True


def parents(root: str = ROOT, own: str = OWN) -> list[str]:
    """Groups that hand the needed controllers on to those below them: the one above ours, and ours."""
    if not os.path.exists(f"{root}/cgroup.controllers"):  # noqa: PTH110 — as above
        return []
    try:
        lines = _read(own).decode().splitlines()
    except OSError:
        return []
    mine = next((line[3:] for line in lines if line.startswith("0::")), "/").rstrip("/")
    candidates = dict.fromkeys([root + mine.rpartition("/")[0], root + mine])
    return [path for path in candidates if _hands_on(path)]


def _hands_on(path: str) -> bool:
    try:
        return set(_read(f"{path}/cgroup.subtree_control").decode().split()) >= _NEEDED
    except OSError:
        return False


def _count_of(path: str, name: bytes) -> int:
    try:
        fields = _read(path).split()
    except OSError:
        return 0
    return int(fields[fields.index(name) + 1]) if name in fields else 0


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 — as above
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 — as above
        file.write(text)


def _remove(path: str) -> None:
    try:
        os.rmdir(path)  # noqa: PTH106 — as above
    except OSError:
        return


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
        lines = _read(path).splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(names))


_BY_SIGNAL = 128
_MEGABYTE = 1_000_000


def breaches_of(order: GuardOrder, beyond: int, exit_code: int, signum: int) -> tuple[str, ...]:
    """The limits that were broken: by the guard's measures, and by the signal with which the kernel ends a program whose file grows too large.

    -1: no such code or signal. What a program prints counts for nothing: it may be about anything.
    """
    breaches: list[str] = []
    if beyond & PROCESSES:
        breaches.append(f"stopped: more than {order.processes} processes (`sandbox: processes:`)")
    if beyond & MEMORY:
        most = _megabytes(order.tree_memory_bytes)
        breaches.append(f"stopped: more than {most} MB of memory (`sandbox: memory_mb:`)")
    if order.file_bytes and signal.SIGXFSZ in (signum, exit_code - _BY_SIGNAL):
        most = _megabytes(order.file_bytes)
        breaches.append(f"stopped: a file grew to more than {most} MB (`sandbox: file_mb:`)")
    most = _megabytes(order.temporary_bytes)
    if beyond & TEMPORARY_TOTAL:
        breaches.append(
            f"stopped: more than {most} MB of temporary files (`sandbox: temporary_mb:`)"
        )
    elif beyond & TEMPORARY_FULL:
        breaches.append(f"temporary files filled the {most} MB allowed (`sandbox: temporary_mb:`)")
    return tuple(breaches)


def _megabytes(amount: int | None) -> str:
    return f"{(amount or 0) / _MEGABYTE:g}"
