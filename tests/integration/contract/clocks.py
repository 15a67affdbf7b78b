"""A clock that takes other keepers of time along when a test moves it."""

from __future__ import annotations

from collections.abc import Callable

from podium.testing import FixedClock


class SharedClock(FixedClock):
    """Stands still until it is moved; then whatever keeps time for itself is moved as far."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Callable[[float], None]] = []

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        for move in self.others:
            move(seconds)
