"""How often somebody may ask, and how often try a token that is none."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from podium.web.access.refusing import TurnedAway

MOST_KEPT = 10_000
"""How many are remembered; who has not asked for longest is forgotten first."""
FAILURES_PER_MINUTE = 10
"""From one address."""
ALL_FAILURES_PER_MINUTE = 100
"""From all addresses together; then those who failed before wait."""

Ticks = Callable[[], float]


class Rates:
    """So many a minute for each, which may come at once; they grow again evenly."""

    def __init__(self, per_minute: int, ticks: Ticks = time.monotonic) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._ticks = ticks
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, key: str) -> None:
        """Take one."""
        self._left[key] = (self._now(key) - 1, self._ticks())
        self._left.move_to_end(key)
        while len(self._left) > MOST_KEPT:
            self._left.popitem(last=False)

    def wait_seconds(self, key: str) -> int:
        """How long until there is one again; 0 when there is."""
        left = self._now(key)
        return 0 if left >= 1 else max(1, math.ceil((1 - left) / self._per_second))

    def knows(self, key: str) -> bool:
        """Whether any of theirs is still spent."""
        return self._now(key) < self._most

    def _now(self, key: str) -> float:
        left, at = self._left.get(key, (self._most, 0.0))
        return min(self._most, left + (self._ticks() - at) * self._per_second)


class Requests:
    """Every request counts; a stream counts once."""

    def __init__(self, per_minute: int, ticks: Ticks = time.monotonic) -> None:
        self._rates = Rates(per_minute, ticks)

    def count(self, key: str) -> None:
        """Raise `TurnedAway` for one too many."""
        if wait := self._rates.wait_seconds(key):
            raise TurnedAway(
                429, f"too many requests; ask again in {wait} s", retry_after_seconds=wait
            )
        self._rates.spend(key)


class Attempts:
    """Tokens and links that were none. What is right is let in all the same: others share its address."""

    def __init__(self, ticks: Ticks = time.monotonic) -> None:
        self._each = Rates(FAILURES_PER_MINUTE, ticks)
        self._all = Rates(ALL_FAILURES_PER_MINUTE, ticks)

    def failed(self, address: str) -> None:
        """Count one. Raises `TurnedAway` for one too many; whoever never failed before is told so as usual."""
        wait = self._each.wait_seconds(address)
        if not wait and self._each.knows(address):
            wait = self._all.wait_seconds("")
        if wait:
            raise TurnedAway(
                429, f"too many wrong tokens; try again in {wait} s", retry_after_seconds=wait
            )
        self._each.spend(address)
        self._all.spend("")
