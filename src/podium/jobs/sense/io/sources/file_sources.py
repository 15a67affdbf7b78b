"""Sources made of files: one file, the newest of a folder, the end of a log, a text file as it stands."""

from __future__ import annotations

from collections.abc import Callable

from podium.core.model import Json, whole_text
from podium.jobs.sense.io.sources.base import WatchedSource, text_of, understand
from podium.jobs.sense.io.sources.file_selection import (
    FileSelection,
    Found,
    NotSensed,
    SourceKit,
    find,
    read_end,
    read_whole,
)
from podium.jobs.sense.models import Condition, Sensed


class FileSource(WatchedSource):
    """Reads a JSON, YAML or text file when it has changed."""

    def __init__(
        self, kit: SourceKit, name: str, path: str, *, stale_seconds: float | None = None
    ) -> None:
        super().__init__(kit, name, FileSelection(path, stale_seconds=stale_seconds))

    def _read(self, found: Found) -> tuple[Condition, str, Json]:
        content = read_whole(self._kit.root, found, self._kit.file_bytes)
        return "ok", "", understand(self.selection.path, content)


class FolderSource(WatchedSource):
    """Reads the newest files of a folder and counts the others."""

    def __init__(
        self,
        kit: SourceKit,
        name: str,
        path: str,
        *,
        pattern: str = "*",
        newest: int = 20,
        stale_seconds: float | None = None,
    ) -> None:
        super().__init__(kit, name, FileSelection(path, pattern, newest, stale_seconds))

    def _read(self, found: Found) -> tuple[Condition, str, Json]:
        content = read_whole(self._kit.root, found, self._kit.file_bytes)
        return "ok", "", understand(found.place, content)


class LogSource(FileSource):
    """The last lines of a file that grows, and may be turned over or emptied at any time."""

    def __init__(
        self,
        kit: SourceKit,
        name: str,
        path: str,
        *,
        lines: int = 20,
        stale_seconds: float | None = None,
    ) -> None:
        super().__init__(kit, name, path, stale_seconds=stale_seconds)
        self._lines = lines

    def _read(self, found: Found) -> tuple[Condition, str, Json]:
        end, whole = read_end(self._kit.root, found, self._kit.file_bytes)
        # A log that was emptied under its writer begins with a hole, which reads as zero bytes.
        text = end.lstrip(b"\0")
        lines = text.splitlines()
        if not whole and len(text) == len(end):
            lines = lines[1:]  # the beginning of the first is not here
        if not whole and not lines:
            raise NotSensed("too_large", f"its last line has over {self._kit.file_bytes} bytes")
        shown = lines[-self._lines :]
        if any(b"\0" in line for line in shown):
            raise NotSensed("binary", "its last lines hold zero bytes, so they are no text")
        return "ok", "", [line.decode(errors="replace") for line in shown]


FILES = "files"


def shown_file(kit: SourceKit, place: str, may_see: Callable[[str], bool]) -> Sensed:
    """Its text without secrets, or why it is not shown. `may_see` is asked of its real path, from the root on."""
    found = find(kit.root, place, kit.is_own)
    shown = kit.redact(whole_text(place))
    try:
        if found.fault:
            raise found.fault
        if not may_see(found.real):
            raise NotSensed("unreadable", "it lies where nobody may look")
        text = text_of(read_whole(kit.root, found, kit.file_bytes))
    except NotSensed as fault:
        return Sensed(source=FILES, place=shown, condition=fault.condition, why=fault.why)
    return Sensed(source=FILES, place=shown, content=kit.redact(whole_text(text)))
