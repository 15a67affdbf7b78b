"""Files that are looked at again and again: what did not change is not read again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from podium.bridge.redacting import redacted
from podium.bridge.sources.finding import Found
from podium.bridge.sources.hiding import named_hidden
from podium.bridge.sources.kit import NotSensed, SourceKit, mark_of
from podium.domain.model import Json, whole_text
from podium.domain.sensing import Condition, Look, Sensed

_SECOND_NS = 1_000_000_000
_SETTLING_NS = 2 * _SECOND_NS
"""File systems note times in steps of up to two seconds. A file that was changed more recently may change
once more and keep its times, so it is looked at once more when it has settled."""
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS = 253_402_300_799 * _SECOND_NS
"""The end of the year 9999. File systems know later times, which no calendar of ours holds."""

Read = Callable[[Found], tuple[Condition, str, Json]]
"""Condition, why, content of a file. Raises `NotSensed`."""


@dataclass(frozen=True)
class _Known:
    signature: tuple[int, ...]
    sensed: Sensed


class Watched:
    """The files of one source, and what was found in them when they were last read."""

    def __init__(self, kit: SourceKit, source: str, stale_seconds: float | None) -> None:
        self._kit = kit
        self._source = source
        self._stale_ns = None if stale_seconds is None else int(stale_seconds * _SECOND_NS)
        self._known: dict[str, _Known] = {}

    def mark(self, files: Sequence[Found], total: int) -> str:
        """What changes exactly when looking would find something else. Reads nothing."""
        return self._mark(files, total, self._now_ns())

    def look(self, files: Sequence[Found], total: int, read: Read) -> Look:
        now = self._now_ns()
        sensed = tuple(self._sensed(each, now, read) for each in files)
        places = {each.place for each in files}
        self._known = {place: known for place, known in self._known.items() if place in places}
        mark = self._mark(files, total, now)
        return Look(source=self._source, found=sensed, total=total, mark=mark)

    def _mark(self, files: Sequence[Found], total: int, now: int) -> str:
        return mark_of(
            total,
            *((each.facts, self._is_stale(each, now), _settles(each, now)) for each in files),
        )

    def _sensed(self, found: Found, now: int, read: Read) -> Sensed:
        known = self._known.get(found.place)
        if known is not None and known.signature == found.signature:
            sensed = known.sensed
        else:
            sensed = self._read(found, read)
            if found.signature and not _settles(found, now):
                self._known[found.place] = _Known(found.signature, sensed)
        stale = self._is_stale(found, now)
        return sensed.model_copy(update={"stale": True}) if stale else sensed

    def _read(self, found: Found, read: Read) -> Sensed:
        condition: Condition
        try:
            if found.fault:
                raise found.fault
            condition, why, content = read(found)
        except NotSensed as fault:
            condition, why, content = fault.condition, fault.why, fault.content
        redact = self._kit.redact
        return Sensed(
            source=self._source,
            place=redact(whole_text(found.place)),
            condition=condition,
            why=redact(whole_text(why)),
            content=redacted(named_hidden(content), redact),
            seen_at=moment_of(found.changed_ns) if found.signature else None,
        )

    def _is_stale(self, found: Found, now: int) -> bool:
        if self._stale_ns is None or not found.signature:
            return False
        return now - found.changed_ns > self._stale_ns

    def _now_ns(self) -> int:
        return int(self._kit.clock.now().timestamp() * _SECOND_NS)


def _settles(found: Found, now: int) -> bool:
    return bool(found.signature) and 0 <= now - found.changed_ns < _SETTLING_NS


def moment_of(nanoseconds: int) -> datetime:
    return _FIRST + timedelta(microseconds=max(0, min(nanoseconds, _LAST_NS)) // 1000)
