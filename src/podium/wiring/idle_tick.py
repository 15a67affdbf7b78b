"""A tick of the sense loop that finds nothing changed, made without reading the settings anew.

A tick that found nothing to do leaves a note of what it rested on: digests of the files that settings and trust are read
from, the variables, and which files the sources look at. While all of that holds, the next idle tick is made from the
note, without pydantic and YAML. Whatever differs, or cannot be read, is left to the ordinary tick.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium import __version__
from podium.bridge.sources.file_selection import SECOND_NS, FileSelection
from podium.bridge.tick_files import BOOK, MEMORY, RecordFiles, TickFiles, read_state
from podium.domain.errors import PodiumError
from podium.domain.tick_summary import summary_line
from podium.wiring.database_mark import has_mark
from podium.wiring.sense_variables import MODE_VARIABLE
from podium.wiring.trust import TrustBook

if TYPE_CHECKING:
    from podium.ports import Clock
    from podium.wiring.folders import Folders

NOTE = "idle.json"
IDLE = "SKIPPED"
"""Status of a tick that asked no planner."""
DATABASE_VARIABLE = "PODIUM_DATABASE_URL"

_MOST_BYTES = 1_000_000
_COUNTERS = ("ticks", "idle_ticks")
"""What an idle tick changes in the loop's memory."""
_VARIABLES = (MODE_VARIABLE, "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
"""Variables beside `PODIUM_*` that settings and folders are taken from."""
_UNUSABLE = (
    *(PodiumError, OSError, ValueError, KeyError, TypeError, AttributeError),
    *(RecursionError, OverflowError),
)

Document = dict[str, Any]


@dataclass(frozen=True)
class IdleTick:
    """An idle tick that was made and recorded."""

    record: Document
    """As JSON answers and the telemetry have it."""
    summary: str
    faults: Sequence[str] = ()
    """What could not be written, in words."""


def make_idle_tick(folders: Folders, environ: Mapping[str, str], clock: Clock) -> IdleTick | None:
    """Count and record one idle tick, if nothing can have changed since the last one.

    None: something has, or that cannot be known; then nothing was written.
    """
    began = clock.monotonic()
    try:
        note = json.loads(read_state(folders.project, NOTE, _MOST_BYTES))
        if note["conditions"] != conditions(folders, environ):
            return None
        folders.make_state()
        files = TickFiles(
            folders.project,
            RecordFiles(**note["files"]),
            clock=clock,
            # Numbers, and what the tick before has written without anything to hide in it.
            redact=str,
            limit_bytes=note["limit_bytes"],
        )
        with files.alone():
            return _made(folders.project, note, files, clock, began)
    except _UNUSABLE:
        return None


def _made(
    root: Path, note: Document, files: TickFiles, clock: Clock, began: float
) -> IdleTick | None:
    memory = json.loads(read_state(root, MEMORY))
    now = clock.now()
    if not _is_idle(root, note, memory, now):
        return None
    counted = {name: memory[name] + 1 for name in _COUNTERS}
    record = {
        **note["outcome"],
        "tick": counted["ticks"],
        "idle_ticks": counted["idle_ticks"],
        "at": now.isoformat().replace("+00:00", "Z"),
        "seconds": round(clock.monotonic() - began, 4),
    }
    summary = _summary(record)
    if not files.keep(MEMORY, lambda: {**memory, **counted}):
        return None
    files.end_tick(summary, record)
    return IdleTick(record, summary, files.faults)


def _is_idle(root: Path, note: Document, memory: Document, now: datetime) -> bool:
    if _memory_digest(memory) != note["memory"] or not all(
        type(memory[name]) is int for name in _COUNTERS
    ):
        return False
    if now < datetime.fromisoformat(note["outcome"]["at"]):
        return False  # the clock was set back
    if note["due"] and now >= datetime.fromisoformat(note["due"]):
        return False
    own, now_ns = tuple(note["own"]), int(now.timestamp() * SECOND_NS)
    marks = {}
    for name, fields in note["sources"].items():
        selection = FileSelection(**fields)
        marks[name] = selection.mark(
            *selection.files(root, lambda path: path.startswith(own)), now_ns
        )
    return bool(marks == memory["marks"])


def note_idle_tick(
    root: Path,
    files: TickFiles,
    outcome: Document,
    *,
    conditions: Document,
    sources: Mapping[str, FileSelection],
    own: Sequence[str],
    record_files: RecordFiles,
    limit_bytes: int,
    due: datetime | None,
) -> None:
    """Leave a note for the ticks after an idle one, which `outcome` is the record of.

    Nothing is noted where another tick has been made since. What cannot be written is in the faults of `files`.
    """
    memory = json.loads(read_state(root, MEMORY))
    if memory["ticks"] != outcome["tick"]:
        return
    files.keep(
        NOTE,
        lambda: {
            "conditions": conditions,
            "outcome": outcome,
            "memory": _memory_digest(memory),
            "due": due.isoformat() if due else "",
            "sources": {name: asdict(selection) for name, selection in sources.items()},
            "own": list(own),
            "files": asdict(record_files),
            "limit_bytes": limit_bytes,
        },
    )


def conditions(folders: Folders, environ: Mapping[str, str]) -> Document:
    """All that settings and trust are made of, besides what was said on the command line.

    Raises `OSError` or a `PodiumError` where that cannot be told.
    """
    if environ.get(DATABASE_VARIABLE) or has_mark(folders):
        raise OSError("the record is on a server")
    variables = sorted(
        (name, value)
        for name, value in environ.items()
        if name.startswith("PODIUM_") or name in _VARIABLES
    )
    return {
        "podium": __version__,
        "environ": _digest(json.dumps(variables).encode()),
        "user": file_digest(folders.user_file),
        "project": file_digest(folders.project_file),
        "trusted": file_digest(TrustBook(folders.user_state).page(folders.project_file)),
        "earned": _trust_digest(folders.project),
    }


def file_digest(file: Path) -> str:
    """SHA-256 of its content as `sha256:…`; empty where there is no file."""
    if not (file.exists() or file.is_symlink()):
        return ""
    if not file.is_file():
        raise OSError(f"{str(file)!r} is not a plain file")
    with file.open("rb") as opened:
        return _bounded_digest(opened.read(_MOST_BYTES + 1))


def _trust_digest(root: Path) -> str:
    try:
        return _bounded_digest(read_state(root, BOOK, _MOST_BYTES))
    except FileNotFoundError:
        return ""


def _bounded_digest(content: bytes) -> str:
    if len(content) > _MOST_BYTES:
        raise OSError("too large to be read at every tick")
    return _digest(content)


def _memory_digest(memory: Document) -> str:
    lasting = {key: value for key, value in memory.items() if key not in _COUNTERS}
    return _digest(json.dumps(lasting, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _summary(record: Document) -> str:
    return summary_line(
        mode=record["mode"],
        tick=record["tick"],
        counts=record["counts"],
        idle_ticks=record["idle_ticks"],
        tokens=record["tokens"],
        status=IDLE,
    )
