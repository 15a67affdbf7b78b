"""Sources that have to ask to know whether anything changed."""

from __future__ import annotations

from abc import ABC, abstractmethod

from podium.bridge.redacting import redacted
from podium.bridge.sources.hiding import named_hidden
from podium.bridge.sources.kit import NotSensed, SourceKit, mark_of
from podium.domain.model import Json, whole_text
from podium.domain.sensing import Condition, Look, Sensed

_FRESH_SECONDS = 10.0
"""For so long what was found for the mark stands for a look, once."""


class AskedSource(ABC):
    """One thing that is asked for: once for a mark and the look after it."""

    def __init__(self, kit: SourceKit, name: str, place: str) -> None:
        """`place` is what it is called in a look: a command, an address, a path."""
        self._kit = kit
        self._name = name
        self._place = place
        self._kept: tuple[float, Look] | None = None

    @abstractmethod
    async def _ask(self) -> tuple[Condition, str, Json]:
        """Condition, why, content. Raises `NotSensed`."""

    @property
    def name(self) -> str:
        return self._name

    async def mark(self) -> str:
        look = await self._look()
        self._kept = (self._kit.clock.monotonic(), look)
        return look.mark

    async def look(self) -> Look:
        kept, self._kept = self._kept, None
        if kept and self._kit.clock.monotonic() - kept[0] < _FRESH_SECONDS:
            return kept[1]
        return await self._look()

    async def _look(self) -> Look:
        condition: Condition
        try:
            condition, why, content = await self._ask()
        except NotSensed as fault:
            condition, why, content = fault.condition, fault.why, fault.content
        redact = self._kit.redact
        return _look_at(
            Sensed(
                source=self._name,
                place=redact(whole_text(self._place)),
                condition=condition,
                why=redact(whole_text(why)),
                content=redacted(named_hidden(content), redact),
            )
        )


def _look_at(sensed: Sensed) -> Look:
    """The look of a source that finds one thing and has to find it to know whether it changed."""
    facts = (sensed.place, sensed.condition, sensed.why, sensed.stale, sensed.content)
    return Look(source=sensed.source, found=(sensed,), total=1, mark=mark_of(*facts))
