"""`SqlStore`: the store on a SQLite file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from podium.domain.errors import NotPossibleNow, StoreUnusable
from podium.domain.events import EventBody
from podium.domain.gating import Receipt
from podium.journal.anchors import Anchors
from podium.journal.doorbell import BURST_SECONDS, Doorbell, Listening
from podium.journal.receipt_key import load_or_create_key
from podium.journal.receipts import Sealer
from podium.journal.redaction import Redactor
from podium.journal.sqlite import connect, explained, prepare
from podium.journal.trace import TraceWriter
from podium.journal.tracing import TraceListener
from podium.journal.transaction import SqlTransaction
from podium.journal.view import SqlView
from podium.journal.writer import Failed, Writer
from podium.ports import Clock, Ids, Tx, View

T = TypeVar("T")

DATABASE_NAME = "podium.db"
TURN_SECONDS = 0.001
"""How long commits may follow each other before the event loop's other tasks have a turn."""

NOTE_SECONDS = 0.1
"""How long a noted event may wait for a commit to travel with."""


class SqlStore:
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
        redactor: Redactor | None = None,
        vault: Path | None = None,
    ) -> SqlStore:
        """Open the store in `folder`, making or upgrading it when needed.

        `vault` is the folder of the receipts' key and heads; keep it outside `folder`.
        Raises a `StoreUnusable` that says what to do; the file is then as it was.
        """
        path = folder / DATABASE_NAME
        await asyncio.to_thread(prepare, path)
        return cls(
            path,
            clock,
            ids,
            redactor or Redactor.from_environment(os.environ),
            vault or folder / "vault",
        )

    def __init__(self, path: Path, clock: Clock, ids: Ids, redactor: Redactor, vault: Path) -> None:
        self.path = path
        self.ids = ids
        self._clock = clock
        self._redactor = redactor
        self._vault = vault
        self._doorbell = Doorbell(path.parent / "doorbell")
        self._trace = TraceListener(TraceWriter(path.parent / "runs"), partial(connect, path))
        self._writer = Writer(
            connect(path),
            path,
            begin=self._begin,
            committed=self._anchor,
            delivered=self._tell,
            pausing=self._doorbell.ring_last,
        )
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="podium-reader")
        self._reading = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._waiters: set[asyncio.Event] = set()
        self._listening: Listening | None = None
        self._note_timer: asyncio.TimerHandle | None = None
        self._bell_timer: asyncio.TimerHandle | None = None
        self._last_turn = 0.0
        self._closed = False
        self._unanchored: dict[str, str] = {}

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

    def note(self, run_id: str, body: EventBody) -> None:
        self._writer.note(run_id, body)
        if self._note_timer is None:
            loop = asyncio.get_running_loop()
            self._note_timer = loop.call_later(NOTE_SECONDS, self._flush_notes)

    async def changes(self) -> AsyncIterator[None]:
        woken = asyncio.Event()
        woken.set()
        self._waiters.add(woken)
        if self._listening is None:
            self._listening = self._doorbell.listen(self._connection(), self._wake)
        try:
            while True:
                await woken.wait()
                woken.clear()
                if self._closed:
                    return
                yield None
        finally:
            self._waiters.discard(woken)
            if not self._waiters and self._listening is not None:
                self._listening.stop()
                self._listening = None

    async def close(self) -> None:
        if self._closed:
            return
        if self._writer.has_notes:
            await self.write(lambda tx: None)
        self._closed = True
        self._wake()
        for timer in (self._note_timer, self._bell_timer):
            if timer is not None:
                timer.cancel()
        self._doorbell.ring_last()
        if self._listening is not None:
            self._listening.stop()
            self._listening = None
        await asyncio.to_thread(self._close_files)

    @cached_property
    def sealer(self) -> Sealer:
        """Seals and checks receipts with this store's key, which is made with the first receipt.

        Raises `StoreUnusable` when there are receipts and no key: another one would call them forged.
        """
        path = self._vault / "receipt.key"
        if not path.exists() and self._has_receipts():
            raise StoreUnusable(
                str(path),
                "the key of the receipts is missing",
                "restore it from a backup, or set PODIUM_HOME to where it was made",
            )
        return Sealer(load_or_create_key(path))

    @cached_property
    def anchors(self) -> Anchors:
        """The heads of the receipt chains, beside the key."""
        return Anchors(self._vault)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not kept up beside the record, such as a trace on a full disk. No event is lost by it.

        Complete once the store is closed.
        """
        return (*self._unanchored.values(), *self._trace.faults.values())

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
            self._redactor.json_text,
            self._seal,
            lambda: self.sealer,
        )

    def _seal(self, receipt: Receipt, previous: str, number: int) -> Receipt:
        return self.sealer.seal(receipt, previous, number)

    def _anchor(self, transaction: SqlTransaction) -> None:
        for run_id, receipt in transaction.new_heads.items():
            try:
                self.anchors.write(run_id, receipt.number, receipt.seal)
                self._unanchored.pop(run_id, None)
            except Exception as error:
                # The commit is made: whoever waits for it is told so whatever happens here.
                self._unanchored[run_id] = f"head of {run_id} not anchored: {error}"

    def _tell(self, transaction: SqlTransaction) -> None:
        self._doorbell.ring()
        if transaction.touched_runs:
            self._trace.grew(transaction.touched_runs)

    def _read(self, work: Callable[[View], T]) -> T:
        with explained(self.path):
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return work(SqlView(connection))
            finally:
                connection.execute("ROLLBACK")

    def _connection(self) -> sqlite3.Connection:
        """This thread's own connection for reading."""
        found: sqlite3.Connection | None = getattr(self._reading, "connection", None)
        if found is None:
            found = self._reading.connection = connect(self.path)
            self._connections.append(found)
        return found

    def _flush_notes(self) -> None:
        self._note_timer = None
        if self._writer.has_notes and not self._closed:
            self._writer.hand_in(lambda tx: None).add_done_callback(self._flushed)

    def _flushed(self, future: asyncio.Future[None]) -> None:
        # A flush that failed left its notes in place; the next write meets the same trouble and says so.
        if not future.cancelled() and future.exception() is None:
            self._wake()

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

    def _wake(self) -> None:
        for woken in self._waiters:
            woken.set()

    def _close_files(self) -> None:
        self._writer.close()
        self._readers.shutdown(wait=True)
        self._trace.close()
        for connection in self._connections:
            connection.close()
        self._doorbell.close()
