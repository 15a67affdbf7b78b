"""The events of a run, those that are there and those to come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial

from podium.domain.errors import UnknownId
from podium.domain.events import Event
from podium.ports import EventQuery, Store, View
from podium.usecases.find_id import find_id

PAGE = 500


async def follow_logs(
    store: Store, run: str, *, follow: bool = False, after_seq: int = 0
) -> AsyncIterator[Event]:
    """Yield a run's events in order; with `follow` until the run has ended, whoever hosts it.

    Raises `UnknownId` or `AmbiguousId` before the first event.
    """
    run_id = await store.read(lambda view: find_id(view, "run", run))
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            more = True
            while more:
                events, ended = await store.read(partial(_page, run_id, after_seq))
                for event in events:
                    yield event
                    after_seq = event.seq
                more = len(events) == PAGE
            if ended or not follow:
                return


def _page(run_id: str, after_seq: int, view: View) -> tuple[list[Event], bool]:
    """The next events, and whether the run had ended when they were read."""
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", run_id)
    query = EventQuery(run_id=run_id, after_seq=after_seq, limit=PAGE)
    return view.events(query), run.status.ended
