"""The second line: finding the processes of a tree by a mark in their environment.

Every tree carries `PODIUM_TREE` with a value of its own. It is needed when a guard was killed,
since then nobody is left to whom the tree's orphans come back, and for servers that were left
running on purpose. A process that wiped its environment is not found this way, unless one that
started it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import signal
import time
from collections.abc import Callable
from pathlib import Path

from podium.core.errors import NotPossibleNow
from podium.sandbox.guard.processes import (
    ON_LINUX,
    ProcessEntry,
    all_entries,
    descendants_of,
    entry_of,
    freeze_and_kill,
)

TAG_VARIABLE = "PODIUM_TREE"

_SWEEP_SECONDS = 10.0
_SWEEP_PAUSE_SECONDS = 0.005
_FAREWELL_SECONDS = 0.5


def new_tag() -> str:
    """A mark for one tree: pid namespace, pid and start of this Podium, and a random part."""
    return f"{_owner_tag(os.getpid())}-{secrets.token_hex(8)}"


def new_server_tag(name: str) -> str:
    """A mark for a server that is to outlive its Podium. It names no owner, so it is never an orphan's."""
    return f"{_beginning_for(name)}{secrets.token_hex(8)}"


def _beginning_for(name: str) -> str:
    return f"left-{hashlib.sha256(name.encode()).hexdigest()[:32]}-"


def end_left_server(name: str) -> int:
    """End a server that a spawn left under this name, with all it started; gives how many processes that were.

    Asked to end first. Raises `NotPossibleNow` when one cannot be ended. On macOS nothing is found:
    there a server has to be asked in its own way.
    """
    processes = _of_server(name)
    _ask_to_end(processes)
    # What wiped its environment is known by having been below the others, and no more when they are gone.
    _refuse_survivors(_end_all(lambda: [*_of_server(name), *filter(_lives, processes)]))
    return len(processes)


def _of_server(name: str) -> list[ProcessEntry]:
    first = [entry for entry, tag in _tagged() if tag.startswith(_beginning_for(name))]
    below = descendants_of(*(entry.pid for entry in first))
    return list({entry.identity: entry for entry in (*first, *below)}.values())


def end_lost_tree(tag: str, first_pid: int) -> None:
    """Kill what is left of a tree whose guard is no more. Raises `NotPossibleNow` if it cannot be."""
    if not ON_LINUX and first_pid:
        with contextlib.suppress(OSError):
            os.killpg(first_pid, signal.SIGKILL)
    _refuse_survivors(_end_all(lambda: [entry for entry, own in _tagged() if own == tag]))


def _refuse_survivors(left: tuple[int, ...]) -> None:
    if left:
        pids = ", ".join(map(str, left))
        raise NotPossibleNow(
            f"some processes could not be ended ({pids}); end them before you continue"
        )


def end_orphans() -> int:
    """Kill the trees of Podiums that are no more, and give how many processes that were.

    For the start of a long-lived Podium: there is something to end only when a guard was killed
    before or together with its Podium.
    """
    orphans = _orphans()
    _ask_to_end(orphans)
    left = _end_all(_orphans)
    return len(orphans) - len(left)


def _ask_to_end(orphans: list[ProcessEntry]) -> None:
    """A git among them takes its locks away, if it is not killed first."""
    for entry in orphans:
        entry.send(signal.SIGTERM)
    deadline = time.monotonic() + _FAREWELL_SECONDS
    while any(_lives(entry) for entry in orphans) and time.monotonic() < deadline:
        time.sleep(_SWEEP_PAUSE_SECONDS)


def _lives(entry: ProcessEntry) -> bool:
    now = entry_of(entry.pid)
    return now is not None and now.start == entry.start and not now.is_zombie


def _end_all(look: Callable[[], list[ProcessEntry]]) -> tuple[int, ...]:
    deadline = time.monotonic() + _SWEEP_SECONDS
    while left := look():
        if time.monotonic() > deadline:
            return tuple(entry.pid for entry in left)
        freeze_and_kill(look)
        time.sleep(_SWEEP_PAUSE_SECONDS)
    return ()


def _orphans() -> list[ProcessEntry]:
    here = _owner_tag(os.getpid()).split("-")[0]
    return [entry for entry, tag in _tagged() if _is_orphan(tag, here)]


def _is_orphan(tag: str, namespace: str) -> bool:
    """Tell whether the owner is dead. Another pid namespace's pids mean nothing here: then no."""
    parts = tag.split("-")
    if len(parts) != 4 or parts[0] != namespace or not parts[1].isdigit():
        return False
    return _owner_tag(int(parts[1])) != "-".join(parts[:3])


def _owner_tag(pid: int) -> str:
    if not ON_LINUX:
        return f"0-{pid}-0"
    owner = entry_of(pid)
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return f"{namespace}-{pid}-{owner.start if owner and not owner.is_zombie else 'gone'}"


def _tagged() -> list[tuple[ProcessEntry, str]]:
    if not ON_LINUX:
        return []
    pairs = [(entry, _tag_of(entry.pid)) for entry in all_entries()]
    return [(entry, tag) for entry, tag in pairs if tag]


def _tag_of(pid: int) -> str:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    beginning = f"{TAG_VARIABLE}=".encode()
    for variable in environment.split(b"\0"):
        if variable.startswith(beginning):
            return variable.removeprefix(beginning).decode(errors="replace")
    return ""
