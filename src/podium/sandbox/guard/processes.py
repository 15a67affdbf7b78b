"""Processes as `/proc` shows them, and signals that reach exactly the one that was meant."""

from __future__ import annotations

import errno
import fcntl
import os
import struct

from podium.sandbox.guard.kernel import signal

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from collections.abc import Callable

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
