"""Time and chance that tests hold still."""

from __future__ import annotations

import hashlib
import itertools
from datetime import UTC, datetime, timedelta

from podium.domain.errors import BadInput
from podium.domain.ids import mint_id

FIRST_MOMENT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
"""When a `FixedClock` starts unless it is told otherwise."""


class FixedClock:
    """A clock that moves only when it is told to."""

    def __init__(self, start: datetime = FIRST_MOMENT) -> None:
        if start.tzinfo is None:
            raise BadInput(f"a clock cannot start at {start!r}: say in which time zone")
        self._start = start.astimezone(UTC)
        self._passed_seconds = 0.0
        self._set_back = timedelta()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed_seconds) - self._set_back

    def monotonic(self) -> float:
        return self._passed_seconds

    def advance(self, seconds: float) -> None:
        """Let time pass. Timers of an event loop do not notice: they run on the loop's own time."""
        if seconds < 0:
            raise BadInput(f"time cannot pass by {seconds!r} seconds: a clock only goes forward")
        self._passed_seconds += seconds

    def set_back(self, seconds: float) -> None:
        """Set the time of day back, as a person or a time server may. Monotonic time does not change."""
        self._set_back += timedelta(seconds=seconds)


class SteadyIds:
    """Ids of the real shape that are the same in every test run.

    Two sources on one store need different seeds.
    """

    def __init__(self, seed: int = 0, start: datetime = FIRST_MOMENT) -> None:
        self._seed = seed
        self._first_millisecond = int(start.timestamp() * 1000)
        self._counter = itertools.count(1)

    def new(self, prefix: str) -> str:
        number = next(self._counter)
        chance = hashlib.sha256(f"{self._seed}:{number}".encode()).digest()[:10]
        return mint_id(prefix, self._first_millisecond + number, chance)
