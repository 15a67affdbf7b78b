"""Time and random ids of the machine."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

from podium.core.ids import mint_id


class SystemClock:
    """The present, from the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class SystemIds:
    """Ids that sort by the moment they were made, also within a process whose clock is set back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = 0

    def new(self, prefix: str) -> str:
        with self._lock:
            # Two ids of one millisecond would sort by chance.
            self._latest = max(self._latest + 1, time.time_ns() // 1_000_000)
            return mint_id(prefix, self._latest)
