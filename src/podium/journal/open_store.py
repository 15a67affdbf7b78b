"""What an open store does whatever its database is: notes, waking, receipts' heads, traces."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeVar

from podium.journal.anchors import Anchors
from podium.journal.figures import StoreFigures
from podium.journal.trace import TraceWriter
from podium.journal.tracing import TraceListener
from podium.journal.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from podium.domain.errors import BadInput
    from podium.domain.event_body import EventBody
    from podium.journal.receipts import Sealer
    from podium.journal.redaction import Redactor
    from podium.journal.statements import ClosableConnection
    from podium.journal.transaction import SqlTransaction
    from podium.journal.writer import Driver
    from podium.ports import Clock, Ids, Tx, View

T = TypeVar("T")

Redact = Callable[[str], str]
"""Takes a JSON document and returns it without secrets."""

NOTE_SECONDS = 0.1
"""How long a noted event may wait for a commit to travel with."""

MOST_UNREADABLE = 20
"""Rows that cannot be read and are told of one by one."""


def environment_redaction() -> Redact:
    """Redaction of the secrets that the environment holds now, prepared with the first document."""
    environ = dict(os.environ)

    @cache
    def redactor() -> Redactor:
        # It knows the words of every record, which takes all of them to be loaded.
        from podium.journal.redaction import Redactor

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
        vault: Path,
        receipt_key: Path | None,
        reader: Callable[[], ClosableConnection],
    ) -> None:
        """`redact` takes the secrets out of each JSON document before it is stored. `reader` makes a connection for
        the thread that keeps the traces below `folder`."""
        self.ids = ids
        self.figures = StoreFigures()
        self._clock = clock
        self._redact = redact
        self._vault = vault
        self._key = receipt_key or vault / "receipt.key"
        self._trace = TraceListener(TraceWriter(folder / "runs"), reader)
        self._waiters: set[asyncio.Event] = set()
        self._note_timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._unanchored: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}
        self._writer: Writer

    def _start(self, driver: Driver, pausing: Callable[[], None]) -> None:
        """Begin to write. `pausing` is called when no commit has followed for a while."""
        self._writer = Writer(
            driver,
            figures=self.figures,
            committed=self._anchor,
            delivered=self._tell,
            pausing=pausing,
            refused=self._refuse_note,
        )

    @abstractmethod
    async def write(self, work: Callable[[Tx], T]) -> T: ...

    @abstractmethod
    async def read(self, work: Callable[[View], T]) -> T: ...

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
        return Anchors(self._vault)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not kept up beside the record, such as a trace on a full disk, and what in it cannot be read.

        Complete once the store is closed.
        """
        return (
            *self._unanchored.values(),
            *self._refused.values(),
            *self._unreadable.values(),
            *self._trace.faults.values(),
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

    def _tell(self, transaction: SqlTransaction) -> None:
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
                self._unanchored[run_id] = f"head of {run_id} not anchored: {error}"

    def _refuse_note(self, run_id: str, error: BadInput) -> None:
        self._refused[run_id] = f"an event of {run_id} was not kept: {error}"

    def _report_unreadable(self, what: str, problem: str) -> None:
        """Called by readers in any thread, for the same row again and again."""
        if len(self._unreadable) < MOST_UNREADABLE:
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
