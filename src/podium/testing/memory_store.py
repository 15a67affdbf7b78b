"""A whole store without a file."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.events import EventBody
from podium.ports import Clock, Tx, View
from podium.testing.clock import FixedClock
from podium.testing.memory_tx import Clean, MemoryTx
from podium.testing.memory_view import MemoryView, Tables

T = TypeVar("T")

_NOTES_WAIT_SECONDS = 0.05


class MemoryStore:
    """Keeps every promise of `Store` but the one that needs a disk.

    Work runs in threads of its own, as it would with a database, so that work which touches the
    event loop is found out. `close` it to end them.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        clean: Clean = str,
        beside: MemoryStore | None = None,
    ) -> None:
        """`clean` removes secrets from the JSON of everything that is written.

        `beside` another store it shares that one's memory, as two processes share a file.
        """
        self._clock = clock if clock is not None else FixedClock()
        self._clean = clean
        self._memory: _Memory = beside._memory if beside is not None else _Memory()
        self._notes: deque[tuple[str, EventBody]] = deque()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="memory-store-writer")
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="memory-store-reader")
        self._closed = False

    async def write(self, work: Callable[[Tx], T]) -> T:
        return await self._in_thread(self._writer, lambda: self._transact(work))

    async def read(self, work: Callable[[View], T]) -> T:
        return await self._in_thread(
            self._readers, lambda: work(MemoryView(self._memory.tables, self._clock.now()))
        )

    def must_have_room(self) -> None:
        """Memory is not what runs out here."""

    def make_room(self) -> bool:
        return False

    def note(self, run_id: str, body: EventBody) -> None:
        self._notes.append((run_id, body))
        asyncio.get_running_loop().call_later(_NOTES_WAIT_SECONDS, self._write_notes_soon)

    async def changes(self) -> AsyncIterator[None]:
        listener = _Listener()
        self._memory.listeners.add(listener)
        try:
            while not self._closed:
                yield
                await listener.next_change()
        finally:
            self._memory.listeners.discard(listener)

    async def close(self) -> None:
        if self._closed:
            return
        await self._in_thread(self._writer, self._write_notes)
        self._closed = True
        self._writer.shutdown()
        self._readers.shutdown()
        self._memory.tell_listeners()

    async def _in_thread(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self._closed:
            raise NotPossibleNow("this store is closed; open a new one")
        return await asyncio.get_running_loop().run_in_executor(thread, work)

    def _transact(self, work: Callable[[Tx], T]) -> T:
        self._write_notes()
        return self._commit(work)

    def _commit(self, work: Callable[[Tx], T]) -> T:
        with self._memory.lock:
            tables = self._memory.tables.copy()
            result = work(MemoryTx(tables, self._clock.now(), self._clean))
            self._memory.tables = tables
        self._memory.tell_listeners()
        return result

    def _write_notes(self) -> None:
        # Notes have their own commit, so that work which raises cannot take them along.
        if self._notes:
            self._commit(self._append_notes)

    def _append_notes(self, tx: Tx) -> None:
        while self._notes:
            # One that cannot be kept must not keep anything else from being written.
            with suppress(BadInput):
                tx.append(*self._notes.popleft())

    def _write_notes_soon(self) -> None:
        if self._notes and not self._closed:
            self._writer.submit(self._write_notes)


class _Listener:
    """Wakes one `changes` loop from a store's thread. Several tellings before it looks are one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def tell(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)

    async def next_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()


@dataclass
class _Memory:
    """What stores beside each other share."""

    tables: Tables = field(default_factory=Tables)
    lock: threading.Lock = field(default_factory=threading.Lock)
    listeners: set[_Listener] = field(default_factory=set)

    def tell_listeners(self) -> None:
        for listener in tuple(self.listeners):
            listener.tell()
