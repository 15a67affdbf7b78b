"""Keeps the JSONL traces up with the journal, in a thread of its own that nobody waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from podium.journal.statements import ClosableConnection, Connection
from podium.journal.trace import TraceWriter
from podium.journal.view import StoredEvent, stored_events

PAUSE_SECONDS = 0.1
"""How long events are gathered before a trace is brought up to date."""

PAGE = 500


class TraceListener:
    """Writes `execution_trace.jsonl` of every run this process touches.

    The trace is derived: whatever is missing is read from the journal the next time, so a trace
    that could not be written costs nothing but its delay.
    """

    def __init__(self, writer: TraceWriter, connect: Callable[[], ClosableConnection]) -> None:
        self._writer = writer
        self._connect = connect
        self._behind: set[str] = set()
        self._lock = threading.Lock()
        self._grew = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._connection: ClosableConnection | None = None
        self.faults: dict[str, str] = {}
        """Run → why its trace could not be written; gone once it could."""

    def grew(self, run_ids: set[str]) -> None:
        """These runs have new events. Returns at once."""
        with self._lock:
            self._behind |= run_ids
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="podium-trace", daemon=True
                )
                self._thread.start()
        self._grew.set()

    def close(self) -> None:
        """Bring every trace up to date and end the thread."""
        self._closing.set()
        self._grew.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        try:
            while True:
                self._grew.wait()
                self._closing.wait(PAUSE_SECONDS)
                self._grew.clear()
                self._catch_up()
                if self._closing.is_set():
                    return
        finally:
            self._let_go()

    def _catch_up(self) -> None:
        with self._lock:
            behind, self._behind = self._behind, set()
        for run_id in behind:
            try:
                # Made here and not before: a file that cannot be opened is a fault like any other.
                connection = self._connection = self._connection or self._connect()
                self._writer.catch_up(run_id, partial(_after, connection, run_id))
                self.faults.pop(run_id, None)
            except Exception as error:
                # A listener must never bring the run down; what it could not do is reported.
                self.faults[run_id] = f"trace of {run_id} not written: {error}"
                # It may be the connection that is broken; another one is quickly made.
                self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _after(connection: Connection, run_id: str, seq: int) -> Sequence[StoredEvent]:
    return stored_events(connection, run_id, seq, PAGE)
