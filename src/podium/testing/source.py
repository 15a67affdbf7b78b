"""A source that finds what a test tells it to."""

from __future__ import annotations

from collections.abc import Mapping

from podium.domain.gating import digest_of
from podium.domain.model import Json
from podium.domain.sensing import Condition, Look, Sensed


class FixedSource:
    """Finds the same until it is told something else, and counts how often it was asked."""

    def __init__(self, name: str = "fixed", found: Mapping[str, Json] | None = None) -> None:
        """`found` has what each place says."""
        self._name = name
        self._found: dict[str, Sensed] = {}
        self.marks = 0
        self.looks = 0
        for place, content in (found or {}).items():
            self.show(place, content)

    @property
    def name(self) -> str:
        return self._name

    def show(
        self, place: str, content: Json = None, *, condition: Condition = "ok", why: str = ""
    ) -> None:
        """From now on this is found there. What is not ok has no content and says why."""
        self._found[place] = Sensed(
            source=self._name, place=place, condition=condition, why=why, content=content
        )

    def hide(self, place: str) -> None:
        """From now on nothing is found there."""
        self._found.pop(place, None)

    async def mark(self) -> str:
        self.marks += 1
        return self._mark()

    async def look(self) -> Look:
        self.looks += 1
        found = tuple(self._found.values())
        return Look(source=self._name, found=found, total=len(found), mark=self._mark())

    def _mark(self) -> str:
        return digest_of([each.model_dump(mode="json") for each in self._found.values()])
