"""Enclosures that a test says: none, or one fence for every folder."""

from __future__ import annotations

from podium.domain.launching import Confinement, Held


class FakeEnclosures:
    """Gives the same answer for every folder, and remembers which were asked for."""

    def __init__(self, fence: Confinement | None = None, held: Held | None = None) -> None:
        """Without a fence nothing is confined."""
        self._fence = fence or Confinement()
        self._held = held
        self.asked: list[str] = []

    async def confinement(self, root: str) -> Confinement:
        self.asked.append(root)
        return self._fence

    def held(self, root: str) -> Held | None:
        return self._held
