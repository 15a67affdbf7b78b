"""Files that are looked at again and again: what did not change is not read again."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from podium.bridge.redacting import redacted
from podium.bridge.sources.file_selection import SECOND_NS, FileSelection, settles
from podium.bridge.sources.finding import Found
from podium.bridge.sources.hiding import named_hidden
from podium.bridge.sources.kit import NotSensed, SourceKit
from podium.domain.model import Json, whole_text
from podium.domain.sensing import Condition, Look, Sensed

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS = 253_402_300_799 * SECOND_NS
"""The end of the year 9999. File systems know later times, which no calendar of ours holds."""


@dataclass(frozen=True)
class _Known:
    signature: tuple[int, ...]
    sensed: Sensed


class WatchedSource(ABC):
    """The files of one source, and what was found in them when they were last read."""

    def __init__(self, kit: SourceKit, name: str, selection: FileSelection) -> None:
        self._kit = kit
        self._name = name
        self.selection = selection
        self._known: dict[str, _Known] = {}

    @abstractmethod
    def _read(self, found: Found) -> tuple[Condition, str, Json]:
        """Condition, why, content of a file. Raises `NotSensed`."""

    @property
    def name(self) -> str:
        return self._name

    async def mark(self) -> str:
        return await asyncio.to_thread(lambda: self.selection.mark(*self._files(), self._now_ns()))

    async def look(self) -> Look:
        return await asyncio.to_thread(lambda: self._look(*self._files()))

    def _files(self) -> tuple[Sequence[Found], int]:
        return self.selection.files(self._kit.root, self._kit.is_own)

    def _look(self, files: Sequence[Found], total: int) -> Look:
        now = self._now_ns()
        sensed = tuple(self._sensed(file, now) for file in files)
        places = {file.place for file in files}
        self._known = {place: known for place, known in self._known.items() if place in places}
        mark = self.selection.mark(files, total, now)
        return Look(source=self._name, found=sensed, total=total, mark=mark)

    def _sensed(self, found: Found, now: int) -> Sensed:
        known = self._known.get(found.place)
        if known is not None and known.signature == found.signature:
            sensed = known.sensed
        else:
            sensed = self._read_safely(found)
            if found.signature and not settles(found, now):
                self._known[found.place] = _Known(found.signature, sensed)
        stale = self.selection.is_stale(found, now)
        return sensed.model_copy(update={"stale": True}) if stale else sensed

    def _read_safely(self, found: Found) -> Sensed:
        condition: Condition
        try:
            if found.fault:
                raise found.fault
            condition, why, content = self._read(found)
        except NotSensed as fault:
            condition, why, content = fault.condition, fault.why, fault.content
        redact = self._kit.redact
        return Sensed(
            source=self._name,
            place=redact(whole_text(found.place)),
            condition=condition,
            why=redact(whole_text(why)),
            content=redacted(named_hidden(content), redact),
            seen_at=moment_of(found.changed_ns) if found.signature else None,
        )

    def _now_ns(self) -> int:
        return int(self._kit.clock.now().timestamp() * SECOND_NS)


def moment_of(nanoseconds: int) -> datetime:
    return _FIRST + timedelta(microseconds=max(0, min(nanoseconds, _LAST_NS)) // 1000)
