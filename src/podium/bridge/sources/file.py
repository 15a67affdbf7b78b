"""One file, such as the newest report of a health check."""

from __future__ import annotations

import asyncio

from podium.bridge.sources.finding import Found, find, read_whole
from podium.bridge.sources.kit import SourceKit
from podium.bridge.sources.understanding import understand
from podium.bridge.sources.watching import Watched
from podium.domain.model import Json
from podium.domain.sensing import Condition, Look


class FileSource:
    """Reads a JSON, YAML or text file when it has changed."""

    def __init__(
        self, kit: SourceKit, name: str, path: str, *, stale_seconds: float | None = None
    ) -> None:
        self._kit = kit
        self._name = name
        self._path = path
        self._watched = Watched(kit, name, stale_seconds)

    @property
    def name(self) -> str:
        return self._name

    async def mark(self) -> str:
        return await asyncio.to_thread(lambda: self._watched.mark(*self._found()))

    async def look(self) -> Look:
        return await asyncio.to_thread(lambda: self._watched.look(*self._found(), self._read))

    def _found(self) -> tuple[tuple[Found], int]:
        found = find(self._kit.root, self._path, self._kit.is_own)
        return (found,), 1 if found.signature else 0

    def _read(self, found: Found) -> tuple[Condition, str, Json]:
        content = read_whole(self._kit.root, found, self._kit.file_bytes)
        return "ok", "", understand(self._path, content)
