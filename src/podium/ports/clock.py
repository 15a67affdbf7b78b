"""Time and chance, handed in so that tests can hold them still."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> datetime:
        """The present moment, absolute, in UTC. For records and deadlines."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back. For timeouts and durations."""
        ...


class Ids(Protocol):
    """Where identifiers come from."""

    def new(self, prefix: str) -> str:
        """A fresh id such as `run_…`, later ones sorting after earlier ones."""
        ...
