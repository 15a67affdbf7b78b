"""The journal of a `MemoryStore`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from podium.domain.events import Event, EventBody
from podium.ports import EventQuery, Store
from podium.testing.memory_store import MemoryStore


class MemoryJournal:
    """The events alone, of the store it is given or of one of its own."""

    def __init__(self, store: Store | None = None) -> None:
        self.store: Store = store if store is not None else MemoryStore()

    async def append(self, run_id: str, body: EventBody) -> int:
        return await self.store.write(lambda tx: tx.append(run_id, body))

    def note(self, run_id: str, body: EventBody) -> None:
        self.store.note(run_id, body)

    async def read(self, query: EventQuery) -> list[Event]:
        return await self.store.read(lambda view: view.events(query))

    async def follow(self, query: EventQuery) -> AsyncIterator[Event]:
        """`limit` is how many events are read at a time, not where following ends."""
        async for _ in self.store.changes():
            while page := await self.read(query):
                for event in page:
                    yield event
                query = query.model_copy(update={"after_position": page[-1].position})
