"""Events by the page: of all runs, or of one."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.events import Event
from podium.ports import EventQuery, Store, View
from podium.usecases.find_id import find_id


async def list_events(
    store: Store, *, after: int = 0, limit: int, types: Sequence[str] = ()
) -> list[Event]:
    """Events of all runs behind this position."""
    query = EventQuery(after_position=after, types=tuple(types), limit=limit)
    return await store.read(lambda view: view.events(query))


async def list_run_events(
    store: Store, run: str, *, after: int = 0, limit: int, types: Sequence[str] = ()
) -> list[Event]:
    """Events of one run behind this `seq`. Raises `UnknownId` or `AmbiguousId`."""

    def look(view: View) -> list[Event]:
        run_id = find_id(view, "run", run)
        query = EventQuery(run_id=run_id, after_seq=after, types=tuple(types), limit=limit)
        return view.events(query)

    return await store.read(look)
