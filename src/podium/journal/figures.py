"""What a store can say of itself: how long its commits take, and how often its line was lost."""

from __future__ import annotations

import threading

from podium.journal.exposition import SHORT_SECONDS, Counter, Histogram, exposed


class StoreFigures:
    """Counted by the threads that write, read and listen; shown by the metrics page."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits = Histogram(
            "podium_store_commit_seconds",
            "How long commits of this process took.",
            bounds=SHORT_SECONDS,
        )
        self._reconnects = Counter(
            "podium_store_reconnects_total",
            "Connections to the database that were lost and made anew.",
        )

    def committed(self, seconds: float) -> None:
        """A transaction went through."""
        with self._lock:
            self._commits.observe(seconds=seconds)

    def reconnected(self) -> None:
        """A connection that was lost stands again."""
        with self._lock:
            self._reconnects.add()

    def exposed(self) -> str:
        """The figures in the text format of metrics."""
        with self._lock:
            return exposed((self._commits, self._reconnects))
