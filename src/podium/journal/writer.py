"""The writer: one commit at a time, at once where that is quick, else in a thread of its own."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from podium.domain.errors import NotPossibleNow, StoreUnusable
from podium.domain.events import EventBody
from podium.journal.doorbell import BURST_SECONDS
from podium.journal.sqlite import BUSY_SECONDS, explain
from podium.journal.transaction import SqlTransaction

LARGEST_BATCH = 128

SLOW_SECONDS = 0.001
"""Commits that take longer than this of late would hold up the event loop: the thread makes them."""

LOOK_SECONDS = 0.05
"""How long it is taken for granted that the file is still where it was."""

_WEIGHT = 0.1
"""How much one commit counts in what commits take of late."""

Work = Callable[[SqlTransaction], Any]


class Done(NamedTuple):
    """What a work gave back."""

    value: Any


class Failed(NamedTuple):
    """What a work raised, or the reason why its commit could not be made."""

    error: BaseException


class _Job(NamedTuple):
    work: Work
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Writer:
    """Owns the write connection. Works are committed in the order they were handed in.

    `begin` makes the transaction's object on an open transaction. `committed` is called after each
    commit, `delivered` when whoever waited for it has been told, `pausing` when no work has followed
    for a while; they must neither raise nor take long.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        *,
        begin: Callable[[sqlite3.Connection], SqlTransaction],
        committed: Callable[[SqlTransaction], None],
        delivered: Callable[[SqlTransaction], None],
        pausing: Callable[[], None],
    ) -> None:
        self._connection = connection
        # Waiting for other processes is done here and not by SQLite: it sleeps for too long at a time.
        connection.execute("PRAGMA busy_timeout=0")
        self._path = path
        self._looked = 0.0
        self._inode = path.stat().st_ino
        self._begin = begin
        self._committed = committed
        self._delivered = delivered
        self._pausing = pausing
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._waiting = 0
        """Jobs handed in and not committed yet; changed under `_count`."""
        self._count = threading.Lock()
        self._turn = threading.Lock()
        """Held by whoever is committing."""
        self._pace_seconds = 0.0
        """What a commit takes of late."""
        self._notes: deque[tuple[str, EventBody]] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="podium-writer", daemon=True)
        self._thread.start()

    @property
    def has_notes(self) -> bool:
        return bool(self._notes)

    def commit_here(self, work: Work) -> Done | Failed | None:
        """Commit at once in the calling thread. None: not now, hand it in instead.

        A hop to the thread and back costs as much as a commit on a good disk. It is taken when works
        are waiting, when another process holds the file, and when commits are slow of late.
        """
        if self._waiting or self._pace_seconds > SLOW_SECONDS:
            return None
        if not self._turn.acquire(blocking=False):
            return None
        try:
            self._refuse_when_closed()
            if not self._begun():
                return None
            [outcome], transaction = self._commit([work])
            if transaction is not None:
                self._delivered(transaction)
            return outcome
        except sqlite3.Error as error:
            return Failed(explain(error, self._path))
        except StoreUnusable as error:
            return Failed(error)
        finally:
            self._turn.release()

    def hand_in(self, work: Work) -> asyncio.Future[Any]:
        """Leave a work to the thread. The future is done when its commit is durable."""
        self._refuse_when_closed()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._count:
            self._waiting += 1
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

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise NotPossibleNow(f"the store {str(self._path)!r} is closed")

    def _serve(self) -> None:
        while (batch := self._next_batch()) is not None:
            with self._turn:
                transaction = self._commit_batch(batch)
            with self._count:
                self._waiting -= len(batch)
            if transaction is not None:
                self._delivered(transaction)

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

    def _commit_batch(self, batch: list[_Job]) -> SqlTransaction | None:
        transaction: SqlTransaction | None = None
        try:
            self._begin_patiently()
            outcomes, transaction = self._commit([job.work for job in batch])
        except sqlite3.Error as error:
            outcomes = [Failed(explain(error, self._path))] * len(batch)
        except Exception as error:
            # Whatever it is, nobody may be left waiting for ever.
            outcomes = [Failed(error)] * len(batch)
        _deliver(batch, outcomes)
        return transaction

    def _begin_patiently(self) -> None:
        """Wait for other processes, in short naps of uneven length so that none is left behind."""
        deadline = time.monotonic() + BUSY_SECONDS
        nap = 0.0005
        while not self._begun():
            if time.monotonic() > deadline:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            time.sleep(nap * random.uniform(0.5, 1.5))  # noqa: S311 - no secret depends on it
            nap = min(nap * 1.5, 0.02)

    def _begun(self) -> bool:
        """Whether a transaction could be begun right now."""
        self._must_be_the_same_file()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _must_be_the_same_file(self) -> None:
        """What is committed to a file that was removed or replaced is lost when it is closed.

        Looking costs a tenth of a commit, so that within a burst it is not done each time.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        try:
            found = self._path.stat().st_ino
        except OSError:
            found = None
        self._looked = now if found == self._inode else 0.0
        if found != self._inode:
            raise StoreUnusable(
                str(self._path),
                "the file was removed or replaced while it was in use",
                "put it back, or end all processes that use it and start again",
            )

    def _commit(
        self, works: Sequence[Work]
    ) -> tuple[Sequence[Done | Failed], SqlTransaction | None]:
        """Do works in the transaction that was begun and commit it; none of it when that fails."""
        began = time.perf_counter()
        transaction = self._begin(self._connection)
        notes: list[tuple[str, EventBody]] = []
        try:
            while self._notes:
                notes.append(self._notes.popleft())
                transaction.append(*notes[-1])
            outcomes = self._perform(works, transaction)
            self._connection.execute("COMMIT")
        except BaseException as error:
            self._undo(notes)
            known = explain(error, self._path) if isinstance(error, sqlite3.Error) else error
            return [Failed(known)] * len(works), None
        took = time.perf_counter() - began
        self._pace_seconds += _WEIGHT * (took - self._pace_seconds)
        self._committed(transaction)
        return outcomes, transaction

    def _perform(
        self, works: Sequence[Work], transaction: SqlTransaction
    ) -> Sequence[Done | Failed]:
        if len(works) == 1:
            return [Done(works[0](transaction))]
        return [self._perform_apart(work, transaction) for work in works]

    def _perform_apart(self, work: Work, transaction: SqlTransaction) -> Done | Failed:
        """Within a shared commit, a work that raises takes back its own writes only."""
        mark = transaction.mark()
        self._connection.execute("SAVEPOINT work")
        outcome: Done | Failed
        try:
            outcome = Done(work(transaction))
        except sqlite3.Error:
            raise
        except Exception as error:
            self._connection.execute("ROLLBACK TO work")
            transaction.rewind(mark)
            outcome = Failed(error)
        self._connection.execute("RELEASE work")
        return outcome

    def _undo(self, notes: list[tuple[str, EventBody]]) -> None:
        self._notes.extendleft(reversed(notes))
        try:
            self._connection.rollback()
        except sqlite3.Error:
            # The file is gone or broken; the error that led here says so to whoever waits.
            return


def _deliver(batch: list[_Job], outcomes: Sequence[Done | Failed]) -> None:
    for job, outcome in zip(batch, outcomes, strict=True):
        try:
            job.loop.call_soon_threadsafe(_resolve, job.future, outcome)
        except RuntimeError:
            # The loop was closed while its work was being committed: nobody waits any more.
            continue


def _resolve(future: asyncio.Future[Any], outcome: Done | Failed) -> None:
    if future.done():
        return
    if isinstance(outcome, Failed):
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome.value)
