"""How many streams and sockets may be open."""

from __future__ import annotations

from collections import Counter

from podium.web.access.refusing import TurnedAway

SOON_SECONDS = 10


class Streams:
    """Counts what is open, by person and in all. Plain requests are answered however many there are."""

    def __init__(self, each: int, most: int) -> None:
        self._each = each
        self._most = most
        self._open: Counter[str] = Counter()

    def begin(self, key: str) -> None:
        """Raise `TurnedAway` for one too many."""
        if self._open[key] >= self._each:
            words = f"you have {self._each} streams open; close a page of the console"
            raise TurnedAway(429, words, retry_after_seconds=SOON_SECONDS)
        if self._open.total() >= self._most:
            words = "too many streams are open; try again soon"
            raise TurnedAway(503, words, retry_after_seconds=SOON_SECONDS)
        self._open[key] += 1

    def end(self, key: str) -> None:
        self._open[key] -= 1
        if not self._open[key]:
            del self._open[key]
