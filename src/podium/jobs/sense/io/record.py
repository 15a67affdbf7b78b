"""Record of the sense loop in files: memory, last tick, bundle and plan, logs, telemetry, book of earned autonomy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ConfigDict, ValidationError

from podium.core.errors import NotPossibleNow
from podium.core.model import FrozenModel, Json, UtcDatetime, json_of, whole_text
from podium.jobs.sense.io.content import Redact, redacted
from podium.jobs.sense.io.safe_files import (
    append_whole,
    explain_errors,
    opened_folder,
    opened_with_lock,
    read_installed,
    read_plain,
)
from podium.jobs.sense.io.sources.file_selection import NotSensed, find, read_end
from podium.jobs.sense.io.tick_files import BOOK, MEMORY, STATE, RecordFiles, TickFiles, read_state
from podium.jobs.sense.models import Bundle, PlannerStatus, SenseMemory, TickOutcome, no_plan
from podium.jobs.sense.trust import TrustEntry
from podium.platform.atomic_write import sync
from podium.ports.engine import Clock

BUNDLE = "context_bundle.json"
PLAN = "plan.json"

_FORMAT = 1


class FileRecord(TickFiles):
    """The files of one root. Texts are written without secrets."""

    def __init__(
        self,
        root: Path,
        files: RecordFiles,
        *,
        clock: Clock,
        redact: Redact,
        limit_bytes: int = 5_000_000,
        bundle_text: Callable[[Bundle], str] = json_of,
    ) -> None:
        """`bundle_text`: a bundle as JSON."""
        super().__init__(root, files, clock=clock, redact=redact, limit_bytes=limit_bytes)
        self._bundle_text = bundle_text
        self._unwritten: SenseMemory | None = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the loop's lock. Raises also `NotPossibleNow`, when the state folder cannot be written."""
        with super().alone():
            try:
                yield
            finally:
                # From here on others may remember something newer.
                self._unwritten = None

    def memory(self) -> SenseMemory:
        if self._unwritten is not None:
            return self._unwritten
        try:
            return _remembered(read_state(self._root, MEMORY))
        except FileNotFoundError:
            return SenseMemory()
        except (NotPossibleNow, _Unusable) as error:
            text = f"starting with empty memory, because {MEMORY} cannot be used: {error}"
            self._log(self._files.log, text, self._clock.now(), "WARNING")
            return SenseMemory()

    def remember(self, memory: SenseMemory) -> bool:
        lasts = bool(self.keep(MEMORY, lambda: self._memory_document(memory)))
        self._unwritten = None if lasts else memory
        return lasts

    def keep_bundle(self, bundle: Bundle) -> str:
        """Write the bundle. Returns its path relative to the root; empty if it could not be written."""
        return self.keep(
            BUNDLE, lambda: redacted(json.loads(self._bundle_text(bundle)), self._redact)
        )

    def keep_plan(self, document: Json) -> str:
        """Write the plan as the planner gave it. Returns as `keep_bundle`."""
        return self.keep(PLAN, lambda: redacted(whole_text(document), self._redact))

    def tick_ended(self, outcome: TickOutcome) -> None:
        self.end_tick(outcome.summary(), redacted(json.loads(json_of(outcome)), self._redact))

    def _memory_document(self, memory: SenseMemory) -> Json:
        document = json.loads(json_of(memory))
        # The rest is digests, numbers and ids, which must come back as they were.
        document["last_plan"] = redacted(document["last_plan"], self._redact)
        return {"format": _FORMAT, **document}


class _Unusable(Exception):
    """The loop's memory cannot be used. The message says why."""


def _remembered(content: bytes) -> SenseMemory:
    try:
        document = json.loads(content)
        form = document.pop("format")
        if form != _FORMAT:
            raise _Unusable(f"its format {form!r} is that of another version of Podium")
        return SenseMemory.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise _Unusable(f"{key}: {first['msg']}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _Unusable("it was not written by Podium") from None


_LIMIT_BYTES = 50_000_000
_UNREADABLE = (
    f"line {{number}} of {BOOK} cannot be read, so promotions before it do not count; "
    "check it, then promote again"
)
_TORN = f"the last line of {BOOK} is incomplete, as after a crash, and is ignored"


class FileTrustBook:
    """The book of one root.

    It fails closed: where a line cannot be read, an incident may have stood, so the promotions before it
    do not count. A person who promotes again sets that right.
    """

    def __init__(self, root: Path, *, redact: Redact) -> None:
        self._root = root
        self._redact = redact
        self._problems: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems found when the book was read last."""
        return self._problems

    def entries(self) -> Sequence[TrustEntry]:
        try:
            with opened_folder(self._root, STATE) as folder:
                pages = _read(read_plain(folder, BOOK, _LIMIT_BYTES))
        except FileNotFoundError:
            pages = _Pages()
        except NotPossibleNow as error:
            pages = _Pages(problems=(f"the trust book is ignored: {error}",))
        self._problems = pages.problems
        return pages.entries

    def add(self, entry: TrustEntry) -> None:
        """Add an entry. Raises `NotPossibleNow` when it cannot be made durable."""
        cleaned = TrustEntry.model_validate(redacted(json.loads(json_of(entry)), self._redact))
        line = json.dumps(json.loads(json_of(cleaned))).encode() + b"\n"
        with (
            opened_folder(self._root, STATE, make=True, mode=0o700) as folder,
            opened_with_lock(folder, BOOK) as book,
            explain_errors(BOOK),
        ):
            pages = _read(os.pread(book, _LIMIT_BYTES + 1, 0))
            if cleaned.key in {entry.key for entry in pages.entries}:
                return
            # Whoever was adding the torn line never heard that it was added, and does so again.
            os.ftruncate(book, os.fstat(book).st_size - pages.torn_bytes)
            append_whole(book, line)
            sync(book)
            sync(folder)


@dataclass(frozen=True)
class _Pages:
    """A book as far as it can be read."""

    entries: tuple[TrustEntry, ...] = ()
    problems: tuple[str, ...] = ()
    torn_bytes: int = 0
    """Bytes of an unfinished line at the end, cut off by a crash."""


def _read(content: bytes) -> _Pages:
    if len(content) > _LIMIT_BYTES:
        raise NotPossibleNow(
            f"{BOOK!r} is larger than {_LIMIT_BYTES // 1_000_000} MB; move it away"
        )
    *lines, end = content.split(b"\n")
    entries: dict[str, TrustEntry] = {}
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        entry = _entry(line)
        if entry is not None:
            entries.setdefault(entry.key, entry)
        elif line.strip():
            entries = {key: entry for key, entry in entries.items() if entry.kind != "promoted"}
            problems.append(_UNREADABLE.format(number=number))
    last = _entry(end)
    if last is not None:
        entries.setdefault(last.key, last)
    elif end:
        problems.append(_TORN)
    return _Pages(tuple(entries.values()), tuple(problems), len(end) if last is None else 0)


def _entry(line: bytes) -> TrustEntry | None:
    try:
        entry = TrustEntry.model_validate_json(line)
    except ValidationError:
        return None
    return None if entry.kind == "promoted" and not entry.by.strip() else entry


_END_BYTES = 400_000


def last_ticks(root: Path, telemetry: str, *, most: int = 20) -> tuple[TickOutcome, ...]:
    """Read the last ticks from the current telemetry file, newest first. Other lines are skipped."""
    file = find(root, telemetry, lambda _: False)
    if file.problem is not None:
        return ()
    try:
        end, _ = read_end(root, file, _END_BYTES)
    except NotSensed:
        return ()
    ticks = []
    for outcome in _read_outcomes(end):
        ticks.append(outcome)
        if len(ticks) == most:
            break
    return tuple(ticks)


def _read_outcomes(end: bytes) -> Iterator[TickOutcome]:
    for line in reversed(end.splitlines()):
        try:
            document = json.loads(line)
            document.pop("event", None)
            yield TickOutcome.model_validate_json(json.dumps(document))
        except (ValueError, AttributeError, TypeError, RecursionError, ValidationError):
            continue


class LastTick(FrozenModel):
    """The last tick, as recorded in the loop's memory."""

    at: UtcDatetime
    ticks: int
    idle_ticks: int
    status: str = ""
    """Status of the planner's last answer."""
    no_plan: str = ""
    """Reason why it gave no plan then."""
    notices: tuple[str, ...] = ()
    """Notices of the last plan."""


class _MemorySummary(FrozenModel):
    """The part of the loop's memory that `last_tick` needs, whatever else a newer one holds."""

    model_config = ConfigDict(extra="ignore")

    ticks: int
    idle_ticks: int = 0
    status: str | None = None
    why: str = ""
    notices: tuple[str, ...] = ()


def last_tick(root: Path) -> LastTick | None:
    """Read the last tick. None: there was none, or the memory cannot be read."""
    try:
        content = read_installed(root, f"{STATE}/{MEMORY}")
        if content is None:
            return None
        memory = _MemorySummary.model_validate_json(content)
        # The loop writes its memory at the end of every tick, also of an idle one.
        at = datetime.fromtimestamp((root / f"{STATE}/{MEMORY}").stat().st_mtime, UTC)
    except (NotPossibleNow, OSError, ValidationError):
        return None
    return LastTick(
        at=at,
        ticks=memory.ticks,
        idle_ticks=memory.idle_ticks,
        status=memory.status or "",
        no_plan=_no_plan(memory),
        notices=memory.notices,
    )


def _no_plan(memory: _MemorySummary) -> str:
    status = next((status for status in PlannerStatus if status == memory.status), None)
    return no_plan(status, memory.why)
