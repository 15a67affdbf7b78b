"""The end of a log, however long the log is."""

from __future__ import annotations

from podium.bridge.sources.file import FileSource
from podium.bridge.sources.finding import Found, read_end
from podium.bridge.sources.kit import NotSensed, SourceKit
from podium.domain.model import Json
from podium.domain.sensing import Condition


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
