"""The writer: one thread owns the write connection; works that wait together share a commit."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from podium.domain.errors import NotPossibleNow
from podium.domain.events import EventBody
from podium.journal.doorbell import BURST_SECONDS
from podium.journal.sqlite import explain
from podium.journal.transaction import SqlTransaction

LARGEST_BATCH = 128

Work = Callable[[SqlTransaction], Any]


class _Job(NamedTuple):
    work: Work
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class _Failure(NamedTuple):
    error: BaseException


class Writer:
    """Commits works in the order they were handed in.

    `begin` makes the transaction's object on an open transaction. `committed` is called in the
    writer's thread after each commit and `pausing` when no work has followed for a while; they must
    neither raise nor take long.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        begin: Callable[[sqlite3.Connection], SqlTransaction],
        committed: Callable[[SqlTransaction], None],
        pausing: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._path = path
        self._begin = begin
        self._committed = committed
        self._pausing = pausing
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._notes: deque[tuple[str, EventBody]] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="podium-writer", daemon=True)
        self._thread.start()

    @property
    def has_notes(self) -> bool:
        return bool(self._notes)

    def submit(self, work: Work) -> asyncio.Future[Any]:
        """Hand in a work. The future is done when its commit is durable, or with what it raised."""
        if self._closed:
            raise NotPossibleNow(f"the store {str(self._path)!r} is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put(_Job(work, loop, future))
        return future

    def note(self, run_id: str, body: EventBody) -> None:
        """Leave an event to be appended at the start of the next commit."""
        self._notes.append((run_id, body))

    def close(self) -> None:
        """Finish what was handed in, end the thread and close the connection. Blocks meanwhile."""
        self._closed = True
        self._jobs.put(None)
        self._thread.join()
        self._connection.close()

    def _serve(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._commit(batch)

    def _next_batch(self) -> list[_Job] | None:
        try:
            first = self._jobs.get(timeout=BURST_SECONDS)
        except Empty:
            self._pausing()
            first = self._jobs.get()
        if first is None:
            self._pausing()
            return None
        batch = [first]
        while len(batch) < LARGEST_BATCH:
            try:
                more = self._jobs.get_nowait()
            except Empty:
                break
            if more is None:
                self._jobs.put(None)
                break
            batch.append(more)
        return batch

    def _commit(self, batch: list[_Job]) -> None:
        notes: list[tuple[str, EventBody]] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            transaction = self._begin(self._connection)
            while self._notes:
                notes.append(self._notes.popleft())
                transaction.append(*notes[-1])
            outcomes = self._perform(batch, transaction)
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._undo(notes)
            known = explain(error, self._path) if isinstance(error, sqlite3.Error) else error
            outcomes = [_Failure(known)] * len(batch)
        else:
            self._committed(transaction)
        _deliver(batch, outcomes)

    def _perform(self, batch: list[_Job], transaction: SqlTransaction) -> list[Any]:
        if len(batch) == 1:
            return [batch[0].work(transaction)]
        return [self._perform_apart(job, transaction) for job in batch]

    def _perform_apart(self, job: _Job, transaction: SqlTransaction) -> Any:
        """Within a shared commit, a work that raises takes back its own writes only."""
        mark = transaction.mark()
        self._connection.execute("SAVEPOINT work")
        try:
            outcome = job.work(transaction)
        except sqlite3.Error:
            raise
        except Exception as error:
            self._connection.execute("ROLLBACK TO work")
            transaction.rewind(mark)
            outcome = _Failure(error)
        self._connection.execute("RELEASE work")
        return outcome

    def _undo(self, notes: list[tuple[str, EventBody]]) -> None:
        self._notes.extendleft(reversed(notes))
        try:
            self._connection.rollback()
        except sqlite3.Error:
            # The file is gone or broken; the error that led here says so to whoever waits.
            return


def _deliver(batch: list[_Job], outcomes: list[Any]) -> None:
    for job, outcome in zip(batch, outcomes, strict=True):
        try:
            job.loop.call_soon_threadsafe(_resolve, job.future, outcome)
        except RuntimeError:
            # The loop was closed while its work was being committed: nobody waits any more.
            continue


def _resolve(future: asyncio.Future[Any], outcome: Any) -> None:
    if future.done():
        return
    if isinstance(outcome, _Failure):
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome)
