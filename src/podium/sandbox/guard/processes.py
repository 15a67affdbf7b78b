"""The guard's part of the operating system: processes as `/proc` shows them, signals that reach exactly one of
them, and process trees that can be ended whole."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import sys
import time

TYPE_CHECKING = False  # what a type checker takes for True; `typing` itself loads too slowly
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    # `signal` pulls in `enum`, which alone would make each start 7 ms slower.
    import _signal as signal

__all__ = [
    "ON_LINUX",
    "GroupTree",
    "ProcessEntry",
    "ReapedTree",
    "adopt_orphans",
    "all_entries",
    "descendants_of",
    "die_with_parent",
    "entry_of",
    "freeze_and_kill",
    "gain_no_privileges",
    "signal",
    "status_of",
]

ON_LINUX = sys.platform == "linux"

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own. Linux only."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have this process killed when the thread that forked it ends. Linux only."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def gain_no_privileges() -> None:
    """Make set-uid programs run as the caller, for this process and all it starts. Linux only."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    if _LIBC.prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


_FREEZE_ROUNDS = 200

_GET_FACTS = 0xC040FF0B
_FACTS_BYTES = 64
_HOW_IT_ENDED = 1 << 3
"""A question to a process handle, since Linux 6.15 answered also when the parent has collected it."""


class ProcessEntry:
    """A process as `/proc` shows it. Pid and start time together never come twice."""

    def __init__(self, pid: int, parent: int, state: str, threads: int, start: int) -> None:
        self.pid = pid
        self.parent = parent
        self.state = state
        self.threads = threads
        self.start = start

    @property
    def identity(self) -> tuple[int, int]:
        return (self.pid, self.start)

    @property
    def is_zombie(self) -> bool:
        return self.state in "ZX"

    def send(self, signum: int) -> None:
        """Signal this very process, never a later one that was given its pid."""
        if not hasattr(os, "pidfd_open"):
            return self._send_by_pid(signum)
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        except OSError:
            return self._send_by_pid(signum)
        try:
            if _is_same(self):
                signal.pidfd_send_signal(handle, signum)
        except OSError as error:
            _ignore_gone(error)
        finally:
            os.close(handle)
        return None

    def _send_by_pid(self, signum: int) -> None:
        if _is_same(self):
            try:
                os.kill(self.pid, signum)
            except OSError as error:
                _ignore_gone(error)


def entry_of(pid: int) -> ProcessEntry | None:
    """The process with this pid, or None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 — pathlib loads too slowly
            text = file.read()
    except OSError:
        return None
    # The second field is the command's name in brackets and may itself hold blanks and brackets.
    fields = text[text.rfind(b")") + 2 :].split()
    return ProcessEntry(pid, int(fields[1]), fields[0].decode(), int(fields[17]), int(fields[19]))


def status_of(handle: int) -> int | None:
    """The exit status of the process behind a handle, as `waitpid` tells its parent; None when that is not known."""
    facts = bytearray(struct.pack("=Q", _HOW_IT_ENDED).ljust(_FACTS_BYTES, b"\0"))
    try:
        fcntl.ioctl(handle, _GET_FACTS, facts)
    except OSError:
        return None
    (mask,) = struct.unpack_from("=Q", facts)
    (status,) = struct.unpack_from("=i", facts, _FACTS_BYTES - 4)
    return int(status) if mask & _HOW_IT_ENDED else None


def all_entries() -> list[ProcessEntry]:
    """Every process that `/proc` shows."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 — as above
    return [entry for entry in map(entry_of, pids) if entry is not None]


def descendants_of(*ancestors: int) -> list[ProcessEntry]:
    """Children, their children and so on, as far as one look can see."""
    children: dict[int, list[ProcessEntry]] = {}
    for entry in all_entries():
        children.setdefault(entry.parent, []).append(entry)
    entries: list[ProcessEntry] = []
    parents = list(ancestors)
    while parents:
        for entry in children.pop(parents.pop(), ()):
            entries.append(entry)
            parents.append(entry.pid)
    return entries


def freeze_and_kill(look: Callable[[], list[ProcessEntry]]) -> set[tuple[int, int]]:
    """Kill what `look` sees, after stopping it all: a stopped process cannot fork away.

    Gives the identities of those that were alive.
    """
    frozen: dict[tuple[int, int], ProcessEntry] = {}
    for _ in range(_FREEZE_ROUNDS):
        fresh = [entry for entry in look() if entry.identity not in frozen]
        if not fresh:
            break
        for entry in fresh:
            entry.send(signal.SIGSTOP)
            frozen[entry.identity] = entry
    for entry in frozen.values():
        # A zombie too: its first thread may have ended while others of it still run.
        entry.send(signal.SIGKILL)
    return {identity for identity, entry in frozen.items() if not entry.is_zombie}


def _is_same(entry: ProcessEntry) -> bool:
    current = entry_of(entry.pid)
    return current is not None and current.start == entry.start


def _ignore_gone(error: OSError) -> None:
    if error.errno not in (errno.ESRCH, errno.EPERM):
        raise error


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
