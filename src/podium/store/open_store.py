"""Behaviour of an open store whatever its database is: notifications, receipts' heads, the thread that writes traces."""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from podium.store.receipts import Anchors
from podium.store.rows import ClosableConnection, StoreConnection
from podium.store.trace import TraceWriter
from podium.store.view import StoredEvent, stored_events
from podium.store.writer import Writer
from podium.telemetry.exposition import StoreFigures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from podium.core.errors import BadInput
    from podium.core.model import EventBody
    from podium.ports import Clock, Ids, StoreView, Transaction
    from podium.store.receipts import Sealer
    from podium.store.redaction import Redactor
    from podium.store.rows import ClosableConnection
    from podium.store.transaction import SqlTransaction
    from podium.store.writer import StoreDriver


PAUSE_SECONDS = 0.1
"""Seconds for which events are gathered before a trace is brought up to date."""

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
        self.problems: dict[str, str] = {}
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
                self.problems.pop(run_id, None)
            except Exception as error:
                # A listener must never bring the run down; what it could not do is reported.
                self.problems[run_id] = f"trace of run {run_id} not written: {error}"
                # It may be the connection that is broken; another one is quickly made.
                self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _after(connection: StoreConnection, run_id: str, seq: int) -> Sequence[StoredEvent]:
    return stored_events(connection, run_id, seq, PAGE)


T = TypeVar("T")

Redact = Callable[[str], str]
"""Takes a JSON document and returns it without secrets."""

NOTE_SECONDS = 0.1
"""Longest wait of a noted event for a commit to travel with."""

MAX_UNREADABLE = 20
"""Rows that cannot be read and are told of one by one."""


def environment_redaction() -> Redact:
    """Redaction of the secrets that the environment holds now, prepared with the first document."""
    environ = dict(os.environ)

    @cache
    def redactor() -> Redactor:
        # It knows the words of every record, which takes all of them to be loaded.
        from podium.store.redaction import Redactor

        return Redactor.from_environment(environ)

    return lambda text: redactor().json_text(text)


class OpenStore(ABC):
    """Shared by the stores. Use one from one event loop; `close` it, or what was noted last is lost."""

    def __init__(
        self,
        *,
        folder: Path,
        clock: Clock,
        ids: Ids,
        redact: Redact,
        key_dir: Path,
        receipt_key: Path | None,
        reader: Callable[[], ClosableConnection],
    ) -> None:
        """`redact` takes the secrets out of each JSON document before it is stored. `reader` makes a connection for
        the thread that keeps the traces below `folder`."""
        self.ids = ids
        self.figures = StoreFigures()
        self._clock = clock
        self._redact = redact
        self._key_dir = key_dir
        self._key = receipt_key or key_dir / "receipt.key"
        self._trace = TraceListener(TraceWriter(folder / "runs"), reader)
        self._waiters: set[asyncio.Event] = set()
        self._note_timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._unanchored: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}
        self._writer: Writer

    def _start(self, driver: StoreDriver, pausing: Callable[[], None]) -> None:
        """Begin to write. `pausing` is called when no commit has followed for a while."""
        self._writer = Writer(
            driver,
            figures=self.figures,
            committed=self._anchor,
            delivered=self._after_commit,
            pausing=pausing,
            refused=self._refuse_note,
        )

    @abstractmethod
    async def write(self, work: Callable[[Transaction], T]) -> T: ...

    @abstractmethod
    async def read(self, work: Callable[[StoreView], T]) -> T: ...

    def note(self, run_id: str, body: EventBody) -> None:
        self._writer.note(run_id, body)
        if self._note_timer is None:
            loop = asyncio.get_running_loop()
            self._note_timer = loop.call_later(NOTE_SECONDS, self._flush_notes)

    async def changes(self) -> AsyncIterator[None]:
        woken = asyncio.Event()
        woken.set()
        self._waiters.add(woken)
        self._listen()
        try:
            while True:
                await woken.wait()
                woken.clear()
                if self._closed:
                    return
                yield None
        finally:
            self._waiters.discard(woken)
            if not self._waiters:
                self._stop_listening()

    async def close(self) -> None:
        if self._closed:
            return
        self._writer.hurry()
        try:
            if self._writer.has_notes:
                await self.write(lambda tx: None)
        finally:
            self._closed = True
            self._wake()
            self._stop_timers()
            self._stop_listening()
            await asyncio.to_thread(self._close_files)

    @cached_property
    def sealer(self) -> Sealer:
        """Seals and checks receipts with this store's key, which is made with the first receipt.

        Raises `StoreUnusable` when there are receipts and no key: another one would call them forged.
        """
        return self._load_sealer()

    @cached_property
    def anchors(self) -> Anchors:
        """The heads of the receipt chains, beside the key."""
        return Anchors(self._key_dir)

    @property
    def problems(self) -> tuple[str, ...]:
        """Parts beside the record that are not kept up, such as a trace on a full disk, and unreadable parts of it.

        Complete once the store is closed.
        """
        return (
            *self._unanchored.values(),
            *self._refused.values(),
            *self._unreadable.values(),
            *self._trace.problems.values(),
        )

    @abstractmethod
    def _load_sealer(self) -> Sealer: ...

    @abstractmethod
    def _listen(self) -> None:
        """Have `_wake` called in this event loop after commits of other processes."""

    @abstractmethod
    def _stop_listening(self) -> None:
        """Nobody waits for changes any more. Harmless when nothing listens."""

    def _stop_timers(self) -> None:
        if self._note_timer is not None:
            self._note_timer.cancel()

    def _close_files(self) -> None:
        """Finish what was handed in, and let go of everything. Runs outside the event loop's thread."""
        self._writer.close()
        self._trace.close()

    def _after_commit(self, transaction: SqlTransaction) -> None:
        """Called after each commit, when whoever waited for it has been told."""
        if transaction.touched_runs:
            self._trace.grew(transaction.touched_runs)

    def _anchor(self, transaction: SqlTransaction) -> None:
        for run_id, receipt in transaction.new_heads.items():
            try:
                self.anchors.write(run_id, receipt.number, receipt.seal)
                self._unanchored.pop(run_id, None)
            except Exception as error:
                # The commit is made: whoever waits for it is told so whatever happens here.
                self._unanchored[run_id] = f"chain head of run {run_id} not anchored: {error}"

    def _refuse_note(self, run_id: str, error: BadInput) -> None:
        self._refused[run_id] = f"an event of run {run_id} was not stored: {error}"

    def _report_unreadable(self, what: str, problem: str) -> None:
        """Called by readers in any thread, for the same row again and again."""
        if len(self._unreadable) < MAX_UNREADABLE:
            self._unreadable.setdefault(what, f"{what} in the database cannot be read: {problem}")

    def _flush_notes(self) -> None:
        self._note_timer = None
        if self._writer.has_notes and not self._closed:
            self._writer.hand_in(lambda tx: None).add_done_callback(self._flushed)

    def _flushed(self, future: asyncio.Future[None]) -> None:
        # A flush that failed left its notes in place; the next write meets the same trouble and says so.
        if not future.cancelled() and future.exception() is None:
            self._wake()

    def _wake(self) -> None:
        for woken in self._waiters:
            woken.set()
