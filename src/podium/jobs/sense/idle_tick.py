"""Idle tick of `podium sense --once --if-changed`, made and printed without loading settings, pydantic or YAML.

A tick that found nothing to do leaves a note of what it rested on: digests of the files that settings and trust are
read from, the variables, and which files the sources look at. While all of that holds, the next idle tick is made
from the note. Whatever differs, or cannot be read, is left to the ordinary tick.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium import __version__
from podium.config.folders import is_on_server
from podium.config.trust import TrustBook
from podium.core.errors import PodiumError
from podium.jobs.sense.io.sources.file_selection import SECOND_NS, FileSelection
from podium.jobs.sense.io.tick_files import (
    BOOK,
    MEMORY,
    MODE_VARIABLE,
    RecordFiles,
    TickFiles,
    read_state,
)
from podium.jobs.sense.tick_report import summary_line

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.config.folders import Folders
    from podium.core.model import Json
    from podium.jobs.sense.models import TickOutcome
    from podium.jobs.sense.tick import TickDeps
    from podium.ports import Clock


SCHEDULED_VARIABLE = "PODIUM_SENSE_SCHEDULED"
"""Set by a scheduler: a tick plans only when something changed."""


def is_scheduled(environ: Mapping[str, str]) -> bool:
    return environ.get(SCHEDULED_VARIABLE, "") not in ("", "0")


NOTE = "idle.json"
IDLE = "SKIPPED"
"""Status of a tick that asked no planner."""
DATABASE_VARIABLE = "PODIUM_DATABASE_URL"

_MAX_BYTES = 1_000_000
_COUNTERS = ("ticks", "idle_ticks")
"""Fields of the loop's memory that an idle tick changes."""
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
    problems: Sequence[str] = ()
    """Files that could not be written, and why."""


def make_idle_tick(folders: Folders, environ: Mapping[str, str], clock: Clock) -> IdleTick | None:
    """Count and record one idle tick, if nothing can have changed since the last one.

    None: something has, or that cannot be known; then nothing was written.
    """
    began = clock.monotonic()
    try:
        note = json.loads(read_state(folders.project, NOTE, _MAX_BYTES))
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
    return IdleTick(record, summary, files.problems)


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
    etags = {}
    for name, fields in note["sources"].items():
        selection = FileSelection(**fields)
        etags[name] = selection.etag(
            *selection.files(root, lambda path: path.startswith(own)), now_ns
        )
    return bool(etags == memory["marks"])


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
    """Return digests of everything that settings and trust are made of, except the command line.

    Raises `OSError` or a `PodiumError` where that cannot be told.
    """
    if environ.get(DATABASE_VARIABLE) or is_on_server(folders):
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
        raise OSError(f"{str(file)!r} is not a regular file")
    with file.open("rb") as opened:
        return _bounded_digest(opened.read(_MAX_BYTES + 1))


def _trust_digest(root: Path) -> str:
    try:
        return _bounded_digest(read_state(root, BOOK, _MAX_BYTES))
    except FileNotFoundError:
        return ""


def _bounded_digest(content: bytes) -> str:
    if len(content) > _MAX_BYTES:
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


def idle_conditions(podium: Podium) -> dict[str, Json] | None:
    """Return the conditions an idle tick depends on, taken before it. None: no idle tick can be made from a note here."""
    from podium.core.work import MODES

    if podium.environ.get(MODE_VARIABLE, "").strip() not in ("", *MODES):
        return None  # every tick tells that this is no mode
    try:
        before = conditions(podium.folders, podium.environ)
    except (PodiumError, OSError):
        return None
    digests = {layer.name: layer.located.digest for layer in podium.configuration.layers}
    same = all(before[name] == digests.get(name, "") for name in ("user", "project"))
    return before if same else None


def note_if_idle(podium: Podium, deps: TickDeps, outcome: TickOutcome, before: Json) -> None:
    """Let the ticks after this one be made from a note, where it found nothing to do and files alone can change that.

    `before` is what `idle_conditions` gave. A note that cannot be written is done without.
    """
    from podium.jobs.sense.composition import record_files, record_of
    from podium.jobs.sense.io.sources.file_sources import WatchedSource
    from podium.jobs.sense.source_factory import own_prefixes
    from podium.jobs.sense.tick import due_at

    memory, record = deps.record.memory(), record_of(podium, deps.options)
    selections = {
        source.name: source.selection
        for source in deps.sources
        if isinstance(source, WatchedSource)
    }
    if (
        not _is_plainly_idle(outcome)
        or (memory.ticks, memory.run_id, memory.pending) != (outcome.tick, "", {})
        or deps.record.problems
        or len(selections) != len(deps.sources)
        or idle_conditions(podium) != before
        or _has_trust_news(podium)
        or not _holds_nothing_to_hide(podium, outcome)
    ):
        return
    with suppress(PodiumError, OSError):
        note_idle_tick(
            podium.folders.project,
            record,
            outcome.model_dump(mode="json"),
            conditions=before,
            sources=selections,
            own=own_prefixes(deps.options.layout),
            record_files=record_files(deps.options),
            limit_bytes=deps.options.log_bytes,
            due=due_at(deps.options, memory),
        )


def _is_plainly_idle(outcome: TickOutcome) -> bool:
    """True if the next tick, when nothing changes, differs in its counters and times alone."""
    from podium.jobs.sense.models import PlannerStatus, TickOutcome

    shared = {"tick", "at", "seconds", "mode", "digest", "counts", "idle_ticks", "tokens"}
    plain = TickOutcome(status=PlannerStatus.SKIPPED, **outcome.model_dump(include=shared))
    return outcome == plain


def _has_trust_news(podium: Podium) -> bool:
    """True if the book has entries that the next tick would count as newer than this one."""
    from podium.jobs.sense.composition import trust_of
    from podium.jobs.sense.io import last_tick

    tick = last_tick(podium.folders.project)
    return tick is None or any(entry.at > tick.at for entry in trust_of(podium).entries())


def _holds_nothing_to_hide(podium: Podium, outcome: TickOutcome) -> bool:
    from podium.jobs.sense.io.content import redacted

    record, redact = outcome.model_dump(mode="json"), podium.redactor.text
    summary = outcome.summary()
    # A pattern may fit the number of a tick to come.
    return (
        not podium.settings.redact
        and redacted(record, redact) == record
        and redact(summary) == summary
    )


@dataclass
class IdleTickArguments:
    """A command line that asks for one tick, which plans only if something changed."""

    json: bool = False
    project: Path | None = None


def answer_idle_tick(arguments: list[str]) -> int | None:
    """Make, record and tell an idle tick, and give its exit code. None: it takes the ordinary command."""
    parsed = parse_arguments(arguments)
    if parsed is None or sys.stdout.isatty() or sys.stderr.isatty():
        return None
    from podium.config.folders import find_folders
    from podium.platform.system_clock import SystemClock

    try:
        folders = find_folders(os.environ, project=parsed.project)
    except (PodiumError, OSError, RuntimeError, ValueError):
        return None
    tick = make_idle_tick(folders, os.environ, SystemClock())
    if tick is None:
        return None
    from podium.cli.screen import AnswerLost, Screen
    from podium.jobs.sense.tick_report import NOTHING_CHANGED, show_part, show_sensed, show_totals

    screen, record = Screen(json=parsed.json), tick.record
    for problem in tick.problems:
        screen.stderr_line(f"podium: {problem}")

    def show() -> None:
        show_sensed(screen, record["tick"], record["mode"], record["seconds"], record["counts"])
        show_part(screen, "planner", [f"{record['status']}: {NOTHING_CHANGED}"])
        show_totals(screen, record["tick"], record["idle_ticks"], record["tokens"])
        screen.line()
        screen.line(tick.summary)

    try:
        screen.answer({**record, "summary": tick.summary}, show)
    except AnswerLost as lost:
        screen.stderr_line(f"podium: {lost}")
        return lost.exit_code
    return 0


def parse_arguments(arguments: list[str]) -> IdleTickArguments | None:
    """None: the command line asks for something else, or says it in a way that is left to typer."""
    parsed, flags = IdleTickArguments(), list[str]()
    tokens = iter(arguments)
    for token in tokens:
        option, equals, value = token.partition("=")
        if option == "--project" or (option == "--root" and "sense" in flags):
            folder = value if equals else next(tokens, "")
            if parsed.project is not None or not folder:
                return None
            parsed.project = Path(folder)
            if option == "--root":
                parsed.project = parsed.project.expanduser()
        elif token in ("sense", "--once", "--if-changed", "--json") and token not in flags:
            if token in ("--once", "--if-changed") and "sense" not in flags:
                return None
            flags.append(token)
        else:
            return None
    if_changed = "--if-changed" in flags or is_scheduled(os.environ)
    if not (if_changed and "--once" in flags):
        return None
    parsed.json = "--json" in flags
    return parsed
