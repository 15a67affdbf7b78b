"""`SqlStore`: the store on a SQLite file, and the driver that writes to it."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from podium.core.errors import NotPossibleNow, StoreUnusable
from podium.store.commit_signal import BURST_SECONDS, CommitSignal
from podium.store.open_store import OpenStore, environment_redaction
from podium.store.receipts import Sealer, load_or_create_key
from podium.store.sqlite import (
    BUSY_SECONDS,
    DiskReserve,
    connect,
    disk_full,
    explain,
    explained,
    is_full,
    prepare,
)
from podium.store.transaction import SqlTransaction
from podium.store.view import SqlView
from podium.store.writer import WriteFailure

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from podium.core.decisions import Receipt
    from podium.ports import Clock, Ids, StoreView, Transaction
    from podium.store.commit_signal import SignalListener
    from podium.store.open_store import Redact


LOOK_SECONDS = 0.05
"""Seconds for which the file is taken to be still in its place."""


class SqliteDriver:
    """The write connection to a file. `begin` makes the transaction's object on an open transaction."""

    patience_seconds = 0.0

    def __init__(
        self,
        path: Path,
        begin: Callable[[sqlite3.Connection], SqlTransaction],
        reserve: DiskReserve,
    ) -> None:
        self._reserve = reserve
        self.name = str(path)
        self._path = path
        self._begin = begin
        self._connection = connect(path)
        # Waiting for other processes is done here and not by SQLite: it sleeps for too long at a time.
        self._connection.execute("PRAGMA busy_timeout=0")
        self._looked = 0.0
        self._inode = path.stat().st_ino

    def begin_now(self) -> SqlTransaction | None:
        return self._begin(self._connection) if self._begun() else None

    def begin(self, runs: Collection[str]) -> SqlTransaction:
        """Wait for other processes, in short naps of uneven length so that none is left behind."""
        deadline = time.monotonic() + BUSY_SECONDS
        nap = 0.0005
        while not self._begun():
            if time.monotonic() > deadline:
                self._connection.execute("BEGIN IMMEDIATE")
                break
            time.sleep(nap * random.uniform(0.5, 1.5))  # noqa: S311 - no secret depends on it
            nap = min(nap * 1.5, 0.02)
        return self._begin(self._connection)

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def take_back(self) -> None:
        # A file that is gone or broken says so to whoever waits, by the error that led here.
        with suppress(sqlite3.Error):
            self._connection.rollback()

    def set_savepoint(self) -> None:
        self._connection.execute("SAVEPOINT work")

    def rollback_to_savepoint(self) -> None:
        self._connection.execute("ROLLBACK TO work")

    def release_savepoint(self) -> None:
        self._connection.execute("RELEASE work")

    def explained(self, error: BaseException) -> BaseException:
        return explain(error, self._path) if isinstance(error, sqlite3.Error) else error

    def is_own(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.Error)

    def blames_one_work(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError | sqlite3.DataError)

    def may_pass(self, error: BaseException) -> bool:
        return False

    def freed_reserve(self, error: BaseException) -> bool:
        if not is_full(error, self._path) or not self._reserve.release():
            return False
        # What is copied out of the log makes its own space usable again. It waits for nobody.
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return True

    def close(self) -> None:
        self._connection.close()

    def _begun(self) -> bool:
        """Tell whether a transaction could be begun right now."""
        self._must_be_the_same_file()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _must_be_the_same_file(self) -> None:
        """Refuse to commit to a file that was removed or replaced: it is lost when it is closed.

        Looking costs a tenth of a commit, so that within a burst it is not done each time.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        try:
            inode = self._path.stat().st_ino
        except OSError:
            inode = None
        self._looked = now if inode == self._inode else 0.0
        if inode != self._inode:
            raise StoreUnusable(
                str(self._path),
                "the file was removed or replaced while it was in use",
                "put it back, or stop all processes that use it and start them again",
            )


T = TypeVar("T")

DATABASE_NAME = "podium.db"
TURN_SECONDS = 0.001
"""Longest stretch of commits before the event loop's other tasks have a turn."""


class SqlStore(OpenStore):
    """Events, runs, steps, calls, approvals and receipts in one file, shared by processes.

    Use it from one event loop. `close` it, or what was noted last is lost.
    """

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        clock: Clock,
        ids: Ids,
        redact: Redact | None = None,
        key_dir: Path | None = None,
        receipt_key: Path | None = None,
    ) -> SqlStore:
        """Open the store in `folder`, making or upgrading it when needed.

        `vault` is the folder of the receipts' heads and, unless `receipt_key` names another file, their
        key; keep it outside `folder`.
        Raises a `StoreUnusable` that says what to do; the file is then as it was.
        """
        path = folder / DATABASE_NAME
        await asyncio.to_thread(prepare, path)
        return cls(
            path,
            clock,
            ids,
            redact or environment_redaction(),
            key_dir or folder / "vault",
            receipt_key,
        )

    def __init__(
        self,
        path: Path,
        clock: Clock,
        ids: Ids,
        redact: Redact,
        key_dir: Path,
        receipt_key: Path | None,
    ) -> None:
        super().__init__(
            folder=path.parent,
            clock=clock,
            ids=ids,
            redact=redact,
            key_dir=key_dir,
            receipt_key=receipt_key,
            reader=partial(connect, path),
        )
        self.path = path
        self._doorbell = CommitSignal(path.parent / "doorbell")
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="podium-reader")
        self._reading = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._listening: SignalListener | None = None
        self._signal_timer: asyncio.TimerHandle | None = None
        self._last_turn = 0.0
        self._reserve = DiskReserve(path.parent)
        self._reserve.fill()
        driver = SqliteDriver(path, self._begin, self._reserve)
        self._start(driver, pausing=self._doorbell.ring_last)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        outcome = self._writer.commit_here(work)
        if outcome is None:
            result: T = await self._writer.hand_in(work)
            self._wake()
            return result
        self._wake()
        self._ring_when_the_burst_is_over()
        await self._let_others_have_a_turn()
        if isinstance(outcome, WriteFailure):
            raise outcome.error
        done: T = outcome.value
        return done

    async def read(self, work: Callable[[StoreView], T]) -> T:
        if self._closed:
            raise NotPossibleNow(f"the store {str(self.path)!r} is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, work)

    def require_space(self) -> None:
        if not self._reserve.is_whole():
            raise disk_full(self.path)

    def release_reserve(self) -> bool:
        return self._reserve.release(last=True)

    def _load_sealer(self) -> Sealer:
        if not self._key.exists() and self._has_receipts():
            raise StoreUnusable(
                str(self._key),
                "the key of the receipts is missing",
                "restore it from a backup, or set PODIUM_HOME to where it was created",
            )
        return Sealer(load_or_create_key(self._key))

    def _has_receipts(self) -> bool:
        connection = connect(self.path)
        try:
            return connection.execute("SELECT 1 FROM receipts LIMIT 1").fetchone() is not None
        finally:
            connection.close()

    def _begin(self, connection: sqlite3.Connection) -> SqlTransaction:
        return SqlTransaction(
            connection,
            self._clock.now(),
            self._redact,
            self._seal,
            lambda: self.sealer,
            report=self._report_unreadable,
        )

    def _seal(self, receipt: Receipt, previous: str, number: int) -> Receipt:
        return self.sealer.seal(receipt, previous, number)

    def _after_commit(self, transaction: SqlTransaction) -> None:
        self._doorbell.ring()
        super()._after_commit(transaction)

    def _listen(self) -> None:
        if self._listening is None:
            self._listening = self._doorbell.listen(self._connection(), self._wake)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.stop()
            self._listening = None

    def _read(self, work: Callable[[StoreView], T]) -> T:
        with explained(self.path):
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return work(SqlView(connection, self._clock.now(), self._report_unreadable))
            finally:
                connection.execute("ROLLBACK")

    def _connection(self) -> sqlite3.Connection:
        """This thread's own connection for reading."""
        connection: sqlite3.Connection | None = getattr(self._reading, "connection", None)
        if connection is None:
            connection = self._reading.connection = connect(self.path)
            self._connections.append(connection)
        return connection

    async def _let_others_have_a_turn(self) -> None:
        """Commits made at once do not wait for anything, and must not keep the loop to themselves."""
        now = time.monotonic()
        if now - self._last_turn > TURN_SECONDS:
            await asyncio.sleep(0)
            self._last_turn = now

    def _ring_when_the_burst_is_over(self) -> None:
        if self._doorbell.owes and self._signal_timer is None:
            loop = asyncio.get_running_loop()
            self._signal_timer = loop.call_later(BURST_SECONDS, self._ring_last)

    def _ring_last(self) -> None:
        self._signal_timer = None
        self._doorbell.ring_last()

    def _stop_timers(self) -> None:
        super()._stop_timers()
        if self._signal_timer is not None:
            self._signal_timer.cancel()

    def _close_files(self) -> None:
        self._readers.shutdown(wait=True)
        super()._close_files()
        self._doorbell.ring_last()
        for connection in self._connections:
            connection.close()
        self._doorbell.close()
