"""`StoreJournal`: events of a store, for packages that need nothing else of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from podium.core.events import Event, EventBody
from podium.ports import EventQuery, Store


class StoreJournal:
    """Appends, reads and follows events on any store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def append(self, run_id: str, body: EventBody) -> int:
        return await self._store.write(lambda tx: tx.append(run_id, body))

    def note(self, run_id: str, body: EventBody) -> None:
        self._store.note(run_id, body)

    async def read(self, query: EventQuery) -> list[Event]:
        return await self._store.read(lambda view: view.events(query))

    async def follow(self, query: EventQuery) -> AsyncIterator[Event]:
        # Positions rise with every commit, so what lies behind the last one seen is all there is.
        position = query.after_position
        async for _ in self._store.changes():
            while events := await self.read(query.model_copy(update={"after_position": position})):
                for event in events:
                    yield event
                position = events[-1].position
