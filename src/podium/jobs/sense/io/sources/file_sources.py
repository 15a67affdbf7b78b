"""Sources made of files: one file, the newest of a folder, the end of a log, a text file as it stands."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from podium.core.model import Json, whole_text
from podium.jobs.sense.io.content import named_hidden, redacted, text_of, understand
from podium.jobs.sense.io.sources.file_selection import (
    SECOND_NS,
    FileSelection,
    NotSensed,
    SourceDeps,
    WatchedFile,
    find,
    read_end,
    read_whole,
    settles,
)
from podium.jobs.sense.models import Condition, Look, Sensed

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS = 253_402_300_799 * SECOND_NS
"""The end of the year 9999. File systems know later times, which no calendar of ours holds."""


@dataclass(frozen=True)
class _CachedReading:
    signature: tuple[int, ...]
    sensed: Sensed


class WatchedSource(ABC):
    """The files of one source, and what was found in them when they were last read."""

    def __init__(self, deps: SourceDeps, name: str, selection: FileSelection) -> None:
        self._deps = deps
        self._name = name
        self.selection = selection
        self._cache: dict[str, _CachedReading] = {}

    @abstractmethod
    def _read(self, file: WatchedFile) -> tuple[Condition, str, Json]:
        """Condition, why, content of a file. Raises `NotSensed`."""

    @property
    def name(self) -> str:
        return self._name

    async def etag(self) -> str:
        return await asyncio.to_thread(lambda: self.selection.etag(*self._files(), self._now_ns()))

    async def look(self) -> Look:
        return await asyncio.to_thread(lambda: self._look(*self._files()))

    def _files(self) -> tuple[Sequence[WatchedFile], int]:
        return self.selection.files(self._deps.root, self._deps.is_own)

    def _look(self, files: Sequence[WatchedFile], total: int) -> Look:
        now = self._now_ns()
        sensed = tuple(self._sensed(file, now) for file in files)
        paths = {file.path for file in files}
        self._cache = {path: cached for path, cached in self._cache.items() if path in paths}
        etag = self.selection.etag(files, total, now)
        return Look(source=self._name, found=sensed, total=total, mark=etag)

    def _sensed(self, file: WatchedFile, now: int) -> Sensed:
        cached = self._cache.get(file.path)
        if cached is not None and cached.signature == file.signature:
            sensed = cached.sensed
        else:
            sensed = self._read_safely(file)
            if file.signature and not settles(file, now):
                self._cache[file.path] = _CachedReading(file.signature, sensed)
        stale = self.selection.is_stale(file, now)
        return sensed.model_copy(update={"stale": True}) if stale else sensed

    def _read_safely(self, file: WatchedFile) -> Sensed:
        condition: Condition
        try:
            if file.problem:
                raise file.problem
            condition, why, content = self._read(file)
        except NotSensed as problem:
            condition, why, content = problem.condition, problem.why, problem.content
        redact = self._deps.redact
        return Sensed(
            source=self._name,
            place=redact(whole_text(file.path)),
            condition=condition,
            why=redact(whole_text(why)),
            content=redacted(named_hidden(content), redact),
            seen_at=datetime_of(file.changed_ns) if file.signature else None,
        )

    def _now_ns(self) -> int:
        return int(self._deps.clock.now().timestamp() * SECOND_NS)


def datetime_of(nanoseconds: int) -> datetime:
    return _FIRST + timedelta(microseconds=max(0, min(nanoseconds, _LAST_NS)) // 1000)


class FileSource(WatchedSource):
    """Reads a JSON, YAML or text file when it has changed."""

    def __init__(
        self, deps: SourceDeps, name: str, path: str, *, stale_seconds: float | None = None
    ) -> None:
        super().__init__(deps, name, FileSelection(path, stale_seconds=stale_seconds))

    def _read(self, file: WatchedFile) -> tuple[Condition, str, Json]:
        content = read_whole(self._deps.root, file, self._deps.file_bytes)
        return "ok", "", understand(self.selection.path, content)


class FolderSource(WatchedSource):
    """Reads the newest files of a folder and counts the others."""

    def __init__(
        self,
        deps: SourceDeps,
        name: str,
        path: str,
        *,
        pattern: str = "*",
        newest: int = 20,
        stale_seconds: float | None = None,
    ) -> None:
        super().__init__(deps, name, FileSelection(path, pattern, newest, stale_seconds))

    def _read(self, file: WatchedFile) -> tuple[Condition, str, Json]:
        content = read_whole(self._deps.root, file, self._deps.file_bytes)
        return "ok", "", understand(file.path, content)


class LogSource(FileSource):
    """The last lines of a file that grows, and may be turned over or emptied at any time."""

    def __init__(
        self,
        deps: SourceDeps,
        name: str,
        path: str,
        *,
        lines: int = 20,
        stale_seconds: float | None = None,
    ) -> None:
        super().__init__(deps, name, path, stale_seconds=stale_seconds)
        self._lines = lines

    def _read(self, file: WatchedFile) -> tuple[Condition, str, Json]:
        end, whole = read_end(self._deps.root, file, self._deps.file_bytes)
        # A log that was emptied under its writer begins with a hole, which reads as zero bytes.
        text = end.lstrip(b"\0")
        lines = text.splitlines()
        if not whole and len(text) == len(end):
            lines = lines[1:]  # the beginning of the first is not here
        if not whole and not lines:
            raise NotSensed(
                "too_large", f"its last line is longer than {self._deps.file_bytes} bytes"
            )
        newest = lines[-self._lines :]
        if any(b"\0" in line for line in newest):
            raise NotSensed("binary", "not a text file: its last lines contain NUL bytes")
        return "ok", "", [line.decode(errors="replace") for line in newest]


FILES = "files"


def file_text(deps: SourceDeps, path: str, may_see: Callable[[str], bool]) -> Sensed:
    """Read a text file without secrets, or the reason why it is not shown. `may_see` gets its real path, relative to the root."""
    file = find(deps.root, path, deps.is_own)
    label = deps.redact(whole_text(path))
    try:
        if file.problem:
            raise file.problem
        if not may_see(file.real):
            raise NotSensed("unreadable", "the policy does not allow reading it")
        text = text_of(read_whole(deps.root, file, deps.file_bytes))
    except NotSensed as problem:
        return Sensed(source=FILES, place=label, condition=problem.condition, why=problem.why)
    return Sensed(source=FILES, place=label, content=deps.redact(whole_text(text)))
