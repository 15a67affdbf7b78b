"""The writer: one commit at a time, at once where that is quick, else in a thread of its own."""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from podium.core.errors import BadInput, NotPossibleNow, StoreAway
from podium.store.commit_signal import BURST_SECONDS
from podium.store.transaction import SqlTransaction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from podium.core.model import EventBody
    from podium.telemetry.exposition import StoreFigures

MAX_BATCH = 128

SLOW_SECONDS = 0.001
"""Commits that take longer than this of late would hold up the event loop: the thread makes them."""

CLOSING_SECONDS = 5.0
"""Longest wait for a database that is away once the store is being closed."""

_WEIGHT = 0.1
"""Weight of one commit in the moving average of commit times."""

Work = Callable[[SqlTransaction], Any]


class StoreDriver(Protocol):
    """A write connection, and its database's own way of keeping or taking back what is done on it."""

    name: str
    """The database in messages."""
    patience_seconds: float
    """Seconds for which works are tried again after what `may_pass`."""

    def begin_now(self) -> SqlTransaction | None:
        """A transaction begun without waiting for anybody. None: not now."""
        ...

    def begin(self, runs: Collection[str]) -> SqlTransaction:
        """A transaction, begun when other processes let it. To `runs` it will surely append events."""
        ...

    def commit(self) -> None:
        """Make it durable. When this raises anything but `StoreAway`, nothing of it was kept."""
        ...

    def take_back(self) -> None:
        """End the transaction without a trace. Never raises."""
        ...

    def set_savepoint(self) -> None: ...
    def rollback_to_savepoint(self) -> None: ...
    def release_savepoint(self) -> None: ...

    def explained(self, error: BaseException) -> BaseException:
        """The error in Podium's words, if it is the driver's; else itself."""
        ...

    def is_own(self, error: BaseException) -> bool:
        """Tell whether the driver raised it, and not a work by itself."""
        ...

    def blames_one_work(self, error: BaseException) -> bool:
        """Tell whether it is about what one work asked for: others beside it would have gone through."""
        ...

    def may_pass(self, error: BaseException) -> bool:
        """Tell whether nothing was kept and the same may go through in a while."""
        ...

    def freed_reserve(self, error: BaseException) -> bool:
        """Tell whether it failed for want of space, and some that was kept back is free now."""
        ...

    def close(self) -> None: ...


class WriteResult(NamedTuple):
    """The value that a work returned."""

    value: Any


class WriteFailure(NamedTuple):
    """The error that a work raised, or the reason why its commit could not be made."""

    error: BaseException


class _WriteJob(NamedTuple):
    work: Work
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Writer:
    """Owns the write connection. Works are committed in the order they were handed in.

    `committed` is called after each commit, `delivered` when whoever waited for it has been told,
    `pausing` when no work has followed for a while, `refused` for a run's note that cannot be kept;
    they must neither raise nor take long.
    """

    def __init__(
        self,
        driver: StoreDriver,
        *,
        figures: StoreFigures,
        committed: Callable[[SqlTransaction], None],
        delivered: Callable[[SqlTransaction], None],
        pausing: Callable[[], None],
        refused: Callable[[str, BadInput], None],
    ) -> None:
        self._driver = driver
        self._figures = figures
        self._committed = committed
        self._delivered = delivered
        self._pausing = pausing
        self._refused = refused
        self._jobs: SimpleQueue[_WriteJob | None] = SimpleQueue()
        self._waiting = 0
        """Jobs handed in and not committed yet; changed under `_count`."""
        self._count = threading.Lock()
        self._turn = threading.Lock()
        """Held by whoever is committing."""
        self._pace_seconds = 0.0
        """Moving average of commit times."""
        self._notes: deque[tuple[str, EventBody]] = deque()
        self._closed = False
        self._give_up_at = math.inf
        self._thread = threading.Thread(target=self._serve, name="podium-writer", daemon=True)
        self._thread.start()

    @property
    def has_notes(self) -> bool:
        return bool(self._notes)

    def commit_here(self, work: Work) -> WriteResult | WriteFailure | None:
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
            try:
                transaction = self._driver.begin_now()
                if transaction is None:
                    return None
                [outcome] = self._commit(transaction, [work])
            except BaseException as error:
                if self._driver.freed_reserve(error):
                    return None
                return WriteFailure(self._driver.explained(error))
            self._delivered(transaction)
            return outcome
        finally:
            self._turn.release()

    def hand_in(self, work: Work) -> asyncio.Future[Any]:
        """Leave a work to the thread. The future is done when its commit is durable."""
        self._refuse_when_closed()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._count:
            self._waiting += 1
        self._jobs.put(_WriteJob(work, loop, future))
        return future

    def note(self, run_id: str, body: EventBody) -> None:
        """Leave an event to be appended at the start of the next commit."""
        self._notes.append((run_id, body))

    def hurry(self) -> None:
        """The store is being closed: wait no longer than a moment for a database that is away."""
        self._give_up_at = time.monotonic() + CLOSING_SECONDS

    def close(self) -> None:
        """Finish what was handed in, end the thread and close the connection. Blocks meanwhile."""
        self._closed = True
        self._jobs.put(None)
        self._thread.join()
        self._driver.close()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise NotPossibleNow(f"the store {self._driver.name!r} is closed")

    def _serve(self) -> None:
        while (batch := self._next_batch()) is not None:
            with self._turn:
                transactions = self._commit_batch(batch)
            with self._count:
                self._waiting -= len(batch)
            for transaction in transactions:
                self._delivered(transaction)

    def _next_batch(self) -> list[_WriteJob] | None:
        try:
            first = self._jobs.get(timeout=BURST_SECONDS)
        except Empty:
            self._pausing()
            first = self._jobs.get()
        if first is None:
            self._pausing()
            return None
        return [first, *self._more(MAX_BATCH - 1)]

    def _more(self, most: int) -> Iterator[_WriteJob]:
        """Jobs that wait by now."""
        for _ in range(most):
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return
            if job is None:
                self._jobs.put(None)
                return
            yield job

    def _commit_batch(self, batch: list[_WriteJob]) -> list[SqlTransaction]:
        transactions: list[SqlTransaction] = []
        try:
            outcomes = self._commit_patiently(batch, transactions)
        except BaseException as error:
            # Whatever it is, nobody may be left waiting for ever.
            outcomes = [WriteFailure(self._driver.explained(error))] * len(batch)
        _deliver(batch, outcomes)
        return transactions

    def _commit_patiently(
        self,
        batch: list[_WriteJob],
        transactions: list[SqlTransaction],
        largest: int = MAX_BATCH,
    ) -> Sequence[WriteResult | WriteFailure]:
        """Commit, in spite of what passes. `batch` grows by jobs that came while it waited its turn."""
        pauses = growing_pauses(self._driver.patience_seconds)
        while True:
            try:
                transaction = self._driver.begin({run_id for run_id, _ in self._notes.copy()})
                batch.extend(self._more(largest - len(batch)))
                outcomes = self._commit(transaction, [job.work for job in batch])
            except Exception as error:
                if len(batch) > 1 and self._driver.blames_one_work(error):
                    return self._commit_one_by_one(batch, transactions)
                if self._driver.freed_reserve(error):
                    continue
                pause = next(pauses, None) if self._driver.may_pass(error) else None
                if pause is None or time.monotonic() > self._give_up_at:
                    raise
                time.sleep(pause)
            else:
                transactions.append(transaction)
                return outcomes

    def _commit_one_by_one(
        self, batch: list[_WriteJob], transactions: list[SqlTransaction]
    ) -> Sequence[WriteResult | WriteFailure]:
        """Find the one whose fault it is; the others are kept."""
        outcomes: list[WriteResult | WriteFailure] = []
        for job in batch:
            try:
                outcomes += self._commit_patiently([job], transactions, largest=1)
            except Exception as error:
                outcomes.append(WriteFailure(self._driver.explained(error)))
        return outcomes

    def _commit(
        self, transaction: SqlTransaction, works: Sequence[Work]
    ) -> Sequence[WriteResult | WriteFailure]:
        """Do works in the transaction that was begun and commit it; none of it when that raises."""
        began = time.perf_counter()
        notes: list[tuple[str, EventBody]] = []
        try:
            while self._notes:
                notes.append(self._notes.popleft())
                self._append(transaction, *notes[-1])
            outcomes = self._perform(works, transaction)
            self._driver.commit()
        except BaseException as error:
            if not isinstance(error, StoreAway):  # else they may be kept, and must not come twice
                self._notes.extendleft(reversed(notes))
            self._driver.take_back()
            raise
        took = time.perf_counter() - began
        self._pace_seconds += _WEIGHT * (took - self._pace_seconds)
        self._figures.committed(took)
        self._committed(transaction)
        return outcomes

    def _append(self, transaction: SqlTransaction, run_id: str, body: EventBody) -> None:
        """A note that cannot be kept must not hold up whatever is committed after it."""
        try:
            transaction.append(run_id, body)
        except BadInput as error:
            self._refused(run_id, error)

    def _perform(
        self, works: Sequence[Work], transaction: SqlTransaction
    ) -> Sequence[WriteResult | WriteFailure]:
        if len(works) == 1:
            return [WriteResult(works[0](transaction))]
        return [self._perform_apart(work, transaction) for work in works]

    def _perform_apart(self, work: Work, transaction: SqlTransaction) -> WriteResult | WriteFailure:
        """Within a shared commit, a work that raises takes back its own writes only."""
        savepoint = transaction.savepoint()
        self._driver.set_savepoint()
        outcome: WriteResult | WriteFailure
        try:
            outcome = WriteResult(work(transaction))
        except Exception as error:
            if self._driver.is_own(error):
                raise
            self._driver.rollback_to_savepoint()
            transaction.rewind(savepoint)
            outcome = WriteFailure(error)
        self._driver.release_savepoint()
        return outcome


def growing_pauses(patience_seconds: float) -> Iterator[float]:
    """Pauses of uneven length, so that processes do not come back all at once, until it is time to give up."""
    deadline = time.monotonic() + patience_seconds
    pause = 0.02
    while time.monotonic() < deadline:
        yield pause * random.uniform(0.5, 1.5)  # noqa: S311 - no secret depends on it
        pause = min(pause * 1.5, 1.0)


def _deliver(batch: list[_WriteJob], outcomes: Sequence[WriteResult | WriteFailure]) -> None:
    for job, outcome in zip(batch, outcomes, strict=True):
        try:
            job.loop.call_soon_threadsafe(_resolve, job.future, outcome)
        except RuntimeError:
            # The loop was closed while its work was being committed: nobody waits any more.
            continue


def _resolve(future: asyncio.Future[Any], outcome: WriteResult | WriteFailure) -> None:
    if future.done():
        return
    if isinstance(outcome, WriteFailure):
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome.value)
