"""`PostgresStore`: the store on a PostgreSQL database, shared by processes on any number of machines."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import psycopg

from podium.core.decisions import Receipt
from podium.core.errors import NotPossibleNow, StoreUnusable
from podium.ports import Clock, Ids, StoreView, Transaction
from podium.store.commit_signal import BURST_SECONDS
from podium.store.open_store import OpenStore, Redact, environment_redaction
from podium.store.postgres import explain, explained, is_passing, prepare
from podium.store.postgres_connection import (
    MAX_WAIT_SECONDS,
    PostgresConnection,
    connect,
    name_of,
)
from podium.store.postgres_driver import (
    CHANNEL,
    MICROSECONDS_NOW,
    GatheringConnection,
    PostgresDriver,
    TransactionStart,
)
from podium.store.postgres_presence import PersistentConnection
from podium.store.receipts import Sealer, load_or_create_key
from podium.store.rows import StoreConnection, datetime_of
from podium.store.transaction import Queued, SqlTransaction
from podium.store.view import SqlView
from podium.store.writer import growing_pauses

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
"""Longest wait of reads and writes for a server that is away."""


class PostgresStore(OpenStore):
    """Events, runs, steps, calls, approvals and receipts in one database.

    Use it from one event loop. `close` it, or what was noted last is lost. Works of one process that
    wait together share a commit; a server that is away is waited for.
    """

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        folder: Path,
        clock: Clock,
        ids: Ids,
        redact: Redact | None = None,
        key_dir: Path | None = None,
        receipt_key: Path | None = None,
        queued: Queued | None = None,
        database_time: bool = True,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> PostgresStore:
        """Open the store in this database, making or upgrading its tables when needed and allowed.

        `folder` is this machine's own, for traces; `vault` that of the receipts' heads and, unless
        `receipt_key` names another file, their key. `queued` is called within the transaction that stores
        a queued run. Without `database_time`, records are dated by `clock` and not by the server's.
        Raises a `StoreUnusable` or `StoreAway` that says what to do.
        """
        await asyncio.to_thread(prepare, url)
        return cls(
            url,
            folder,
            clock,
            ids,
            redact or environment_redaction(),
            key_dir or folder / "vault",
            receipt_key,
            queued,
            database_time,
            patience_seconds,
        )

    def __init__(
        self,
        url: str,
        folder: Path,
        clock: Clock,
        ids: Ids,
        redact: Redact,
        key_dir: Path,
        receipt_key: Path | None,
        queued: Queued | None,
        database_time: bool,
        patience_seconds: float,
    ) -> None:
        super().__init__(
            folder=folder,
            clock=clock,
            ids=ids,
            redact=redact,
            key_dir=key_dir,
            receipt_key=receipt_key,
            reader=partial(connect, url),
        )
        self.url = url
        self._queued = queued
        self._database_time = database_time
        self._patience_seconds = patience_seconds
        self._proved: Sealer | None = None
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="podium-reader")
        self._reading = threading.local()
        self._connections: set[GatheringConnection] = set()
        self._ear: PersistentConnection | None = None
        self._counted: object = None
        self._driver = PostgresDriver(url, self._begin, self.figures, patience_seconds)
        self._start(self._driver, pausing=lambda: None)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        result: T = await self._writer.hand_in(work)
        self._wake()
        return result

    def require_space(self) -> None:
        """The server looks after its own disk."""

    def release_reserve(self) -> bool:
        return False

    async def read(self, work: Callable[[StoreView], T]) -> T:
        self._refuse_when_closed()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, work)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise NotPossibleNow(f"the store {name_of(self.url)!r} is closed")

    def _begin(self, line: GatheringConnection, start: TransactionStart) -> SqlTransaction:
        return SqlTransaction(
            line,
            datetime_of(start.now_microseconds) if self._database_time else self._clock.now(),
            self._redact,
            partial(self._seal, line),
            partial(self._sealer_of, line, keep=True),
            report=self._report_unreadable,
            queued=self._queued,
            last_position=start.last_position,
            last_seqs=start.last_seqs,
        )

    def _seal(self, line: StoreConnection, receipt: Receipt, previous: str, number: int) -> Receipt:
        return self._sealer_of(line, keep=True).seal(receipt, previous, number)

    def _load_sealer(self) -> Sealer:
        with explained(self.url):
            connection = connect(self.url)
            try:
                return self._sealer_of(connection, keep=False)
            finally:
                connection.close()

    def _sealer_of(self, sql: StoreConnection, *, keep: bool) -> Sealer:
        """The sealer with this machine's key, if that is the key of this database's receipts.

        With `keep` a database that has none yet takes this one: all machines must share it.
        """
        if self._proved is not None:
            return self._proved
        row = sql.execute("SELECT value FROM meta WHERE name = 'receipt_key'", {}).fetchone()
        if not self._key.exists() and (row is not None or _has_receipts(sql)):
            raise self._other_key("this machine does not have the key of the database's receipts")
        sealer = Sealer(load_or_create_key(self._key))
        if row is None:
            if keep:
                sql.execute(
                    "INSERT INTO meta (name, value) VALUES ('receipt_key', :print)",
                    {"print": sealer.fingerprint},
                )
        elif row[0] != sealer.fingerprint:
            raise self._other_key("the receipts of this database are sealed with another key")
        else:
            self._proved = sealer
        return sealer

    def _other_key(self, problem: str) -> StoreUnusable:
        return StoreUnusable(
            str(self._key),
            problem,
            "copy the key file from the machine that sealed the first receipt, or name a copy of it in "
            "PODIUM_RECEIPT_KEY",
        )

    def _listen(self) -> None:
        if self._ear is None:
            loop = asyncio.get_running_loop()
            self._ear = PersistentConnection(
                self.url,
                set_up=partial(self._set_up_ear, loop),
                look=partial(self._look, loop),
                callback=partial(self._on_signal, loop),
                name="podium-ear",
            )

    def _stop_listening(self) -> None:
        # Who listened once will again: the line is kept until the store is closed.
        if self._closed and self._ear is not None:
            self._ear.stop()

    def _set_up_ear(self, loop: asyncio.AbstractEventLoop, line: PostgresConnection) -> None:
        line.execute(f"LISTEN {CHANNEL}")
        if self._counted is not None:
            self.figures.reconnected()
        self._counted = _commits(line)
        # What was told before this line stood, nobody heard.
        _call(loop, self._wake)

    def _look(self, loop: asyncio.AbstractEventLoop, line: PostgresConnection) -> None:
        """Make up for a notice that never came."""
        counted = _commits(line)
        if counted != self._counted:
            self._counted = counted
            _call(loop, self._wake)

    def _on_signal(self, loop: asyncio.AbstractEventLoop, senders: Sequence[int]) -> None:
        if any(sender != self._driver.process_id for sender in senders):
            _call(loop, self._wake)
            # Within so long one notice stands for all.
            time.sleep(BURST_SECONDS)

    def _read(self, work: Callable[[StoreView], T]) -> T:
        pauses = growing_pauses(self._patience_seconds)
        while True:
            try:
                return self._look_at(self._connection(), work)
            except psycopg.Error as error:
                self._drop_connection()
                pause = next(pauses, None) if is_passing(error) and not self._closed else None
                if pause is None:
                    raise explain(error, self.url) from error
                time.sleep(pause)

    def _look_at(self, line: GatheringConnection, work: Callable[[StoreView], T]) -> T:
        line.control("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            (now,) = line.control(f"SELECT {MICROSECONDS_NOW}").fetchone()
            timestamp = datetime_of(now) if self._database_time else self._clock.now()
            result = work(SqlView(line, timestamp, self._report_unreadable))
            line.commit()
        except BaseException:
            line.roll_back()
            raise
        return result

    def _connection(self) -> GatheringConnection:
        """This thread's own connection for reading."""
        connection: GatheringConnection | None = getattr(self._reading, "connection", None)
        if connection is None:
            connection = GatheringConnection(
                connect(self.url, longest_statement_seconds=MAX_WAIT_SECONDS)
            )
            self._reading.connection = connection
            self._connections.add(connection)
        return connection

    def _drop_connection(self) -> None:
        connection: GatheringConnection | None = getattr(self._reading, "connection", None)
        if connection is not None:
            self._reading.connection = None
            self._connections.discard(connection)
            connection.close()
            self.figures.reconnected()

    def _close_files(self) -> None:
        super()._close_files()
        self._readers.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
        if self._ear is not None:
            self._ear.join()


def _commits(sql: StoreConnection) -> object:
    """Something that no commit of any process leaves as it was."""
    return sql.execute("SELECT count(*), sum(last), max(at) FROM writers", {}).fetchone()


def _has_receipts(sql: StoreConnection) -> bool:
    return sql.execute("SELECT 1 FROM receipts LIMIT 1", {}).fetchone() is not None


def _call(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(wake)
    except RuntimeError:
        # The loop was closed before the store: nobody waits any more.
        return
