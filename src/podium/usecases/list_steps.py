"""The steps of a run, page by page."""

from __future__ import annotations

from podium.domain.work import StepRecord
from podium.ports import Store, View
from podium.usecases.find_id import find_id


async def list_steps(store: Store, run: str, *, after: int = -1, limit: int) -> list[StepRecord]:
    """Steps behind this ordinal, in their order. Raises `UnknownId` or `AmbiguousId`."""

    def look(view: View) -> list[StepRecord]:
        return view.steps(find_id(view, "run", run), after=after, limit=limit)

    return await store.read(look)
