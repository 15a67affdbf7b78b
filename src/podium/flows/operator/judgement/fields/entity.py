"""What was found in a text, and which of two overlapping finds stays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podium.domain.model import Json


class Entity(NamedTuple):
    """A part of a text that means something by itself."""

    kind: str
    """phone, email, money, date, time, datetime, period, name, suburb, address, postcode, number, `id` or `id:KIND`."""
    value: Json
    text: str
    start: int
    end: int
    certainty: int = 0
    """Of 100. Decides between finds that overlap; it is no probability."""

    def touches(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end


def settle(found: Iterable[Entity], length: int) -> list[Entity]:
    """The finds that do not overlap, in the order of the text: the most certain first, then the longest."""
    taken = bytearray(length)
    kept = []
    for entity in sorted(
        found, key=lambda each: (-each.certainty, each.start - each.end, each.start)
    ):
        if taken.find(1, entity.start, entity.end) < 0:
            taken[entity.start : entity.end] = b"\x01" * (entity.end - entity.start)
            kept.append(entity)
    return sorted(kept, key=lambda each: each.start)
