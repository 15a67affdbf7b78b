"""Sources made of files: one file, the newest of a folder, the end of a log, a text file as it stands."""

from __future__ import annotations

from collections.abc import Callable

from podium.core.model import Json, whole_text
from podium.jobs.sense.io.sources.base import WatchedSource, text_of, understand
from podium.jobs.sense.io.sources.file_selection import (
    FileSelection,
    NotSensed,
    SourceDeps,
    SourceFile,
    find,
    read_end,
    read_whole,
)
from podium.jobs.sense.models import Condition, Sensed


class FileSource(WatchedSource):
    """Reads a JSON, YAML or text file when it has changed."""

    def __init__(
        self, deps: SourceDeps, name: str, path: str, *, stale_seconds: float | None = None
    ) -> None:
        super().__init__(deps, name, FileSelection(path, stale_seconds=stale_seconds))

    def _read(self, file: SourceFile) -> tuple[Condition, str, Json]:
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

    def _read(self, file: SourceFile) -> tuple[Condition, str, Json]:
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

    def _read(self, file: SourceFile) -> tuple[Condition, str, Json]:
        end, whole = read_end(self._deps.root, file, self._deps.file_bytes)
        # A log that was emptied under its writer begins with a hole, which reads as zero bytes.
        text = end.lstrip(b"\0")
        lines = text.splitlines()
        if not whole and len(text) == len(end):
            lines = lines[1:]  # the beginning of the first is not here
        if not whole and not lines:
            raise NotSensed("too_large", f"its last line has over {self._deps.file_bytes} bytes")
        newest = lines[-self._lines :]
        if any(b"\0" in line for line in newest):
            raise NotSensed("binary", "its last lines hold zero bytes, so they are no text")
        return "ok", "", [line.decode(errors="replace") for line in newest]


FILES = "files"


def file_text(deps: SourceDeps, path: str, may_see: Callable[[str], bool]) -> Sensed:
    """Its text without secrets, or why it is not shown. `may_see` is asked of its real path, from the root on."""
    file = find(deps.root, path, deps.is_own)
    label = deps.redact(whole_text(path))
    try:
        if file.problem:
            raise file.problem
        if not may_see(file.real):
            raise NotSensed("unreadable", "it lies where nobody may look")
        text = text_of(read_whole(deps.root, file, deps.file_bytes))
    except NotSensed as problem:
        return Sensed(source=FILES, place=label, condition=problem.condition, why=problem.why)
    return Sensed(source=FILES, place=label, content=deps.redact(whole_text(text)))
