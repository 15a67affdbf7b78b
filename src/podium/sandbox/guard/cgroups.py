"""Control groups (v2): a group for one tree, where this user may make one."""

from __future__ import annotations

import os

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
