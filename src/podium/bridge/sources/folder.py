"""The newest files of a folder, such as answers of a worker or states of sessions."""

from __future__ import annotations

from podium.bridge.sources.file_selection import FileSelection
from podium.bridge.sources.finding import Found, read_whole
from podium.bridge.sources.kit import SourceKit
from podium.bridge.sources.understanding import understand
from podium.bridge.sources.watching import WatchedSource
from podium.domain.model import Json
from podium.domain.sensing import Condition


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
