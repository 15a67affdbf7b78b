"""`SqlStore`: the store on a SQLite file."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from podium.domain.errors import NotPossibleNow, StoreUnusable
from podium.journal.doorbell import BURST_SECONDS, Doorbell
from podium.journal.open_store import OpenStore, environment_redaction
from podium.journal.receipt_key import load_or_create_key
from podium.journal.receipts import Sealer
from podium.journal.reserve import Reserve
from podium.journal.sqlite import connect, disk_full, explained, prepare
from podium.journal.sqlite_driver import SqliteDriver
from podium.journal.transaction import SqlTransaction
from podium.journal.view import SqlView
from podium.journal.writer import Failed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from podium.domain.gating import Receipt
    from podium.journal.doorbell import Listening
    from podium.journal.open_store import Redact
    from podium.ports import Clock, Ids, Tx, View

T = TypeVar("T")

DATABASE_NAME = "podium.db"
TURN_SECONDS = 0.001
"""How long commits may follow each other before the event loop's other tasks have a turn."""


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
        vault: Path | None = None,
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
            vault or folder / "vault",
            receipt_key,
        )

    def __init__(
        self,
        path: Path,
        clock: Clock,
        ids: Ids,
        redact: Redact,
        vault: Path,
        receipt_key: Path | None,
    ) -> None:
        super().__init__(
            folder=path.parent,
            clock=clock,
            ids=ids,
            redact=redact,
            vault=vault,
            receipt_key=receipt_key,
            reader=partial(connect, path),
        )
        self.path = path
        self._doorbell = Doorbell(path.parent / "doorbell")
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="podium-reader")
        self._reading = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._listening: Listening | None = None
        self._bell_timer: asyncio.TimerHandle | None = None
        self._last_turn = 0.0
        self._reserve = Reserve(path.parent)
        self._reserve.fill()
        driver = SqliteDriver(path, self._begin, self._reserve)
        self._start(driver, pausing=self._doorbell.ring_last)

    async def write(self, work: Callable[[Tx], T]) -> T:
        outcome = self._writer.commit_here(work)
        if outcome is None:
            result: T = await self._writer.hand_in(work)
            self._wake()
            return result
        self._wake()
        self._ring_when_the_burst_is_over()
        await self._let_others_have_a_turn()
        if isinstance(outcome, Failed):
            raise outcome.error
        done: T = outcome.value
        return done

    async def read(self, work: Callable[[View], T]) -> T:
        if self._closed:
            raise NotPossibleNow(f"the store {str(self.path)!r} is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, work)

    def must_have_room(self) -> None:
        if not self._reserve.is_whole():
            raise disk_full(self.path)

    def make_room(self) -> bool:
        return self._reserve.release(last=True)

    def _load_sealer(self) -> Sealer:
        if not self._key.exists() and self._has_receipts():
            raise StoreUnusable(
                str(self._key),
                "the key of the receipts is missing",
                "restore it from a backup, or set PODIUM_HOME to where it was made",
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

    def _tell(self, transaction: SqlTransaction) -> None:
        self._doorbell.ring()
        super()._tell(transaction)

    def _listen(self) -> None:
        if self._listening is None:
            self._listening = self._doorbell.listen(self._connection(), self._wake)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.stop()
            self._listening = None

    def _read(self, work: Callable[[View], T]) -> T:
        with explained(self.path):
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return work(SqlView(connection, self._clock.now(), self._report_unreadable))
            finally:
                connection.execute("ROLLBACK")

    def _connection(self) -> sqlite3.Connection:
        """This thread's own connection for reading."""
        found: sqlite3.Connection | None = getattr(self._reading, "connection", None)
        if found is None:
            found = self._reading.connection = connect(self.path)
            self._connections.append(found)
        return found

    async def _let_others_have_a_turn(self) -> None:
        """Commits made at once do not wait for anything, and must not keep the loop to themselves."""
        now = time.monotonic()
        if now - self._last_turn > TURN_SECONDS:
            await asyncio.sleep(0)
            self._last_turn = now

    def _ring_when_the_burst_is_over(self) -> None:
        if self._doorbell.owes and self._bell_timer is None:
            loop = asyncio.get_running_loop()
            self._bell_timer = loop.call_later(BURST_SECONDS, self._ring_last)

    def _ring_last(self) -> None:
        self._bell_timer = None
        self._doorbell.ring_last()

    def _stop_timers(self) -> None:
        super()._stop_timers()
        if self._bell_timer is not None:
            self._bell_timer.cancel()

    def _close_files(self) -> None:
        self._readers.shutdown(wait=True)
        super()._close_files()
        self._doorbell.ring_last()
        for connection in self._connections:
            connection.close()
        self._doorbell.close()
