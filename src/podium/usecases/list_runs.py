"""Runs, newest first."""

from __future__ import annotations

from podium.domain.work import Run
from podium.ports import RunQuery, Store


async def list_runs(store: Store, query: RunQuery | None = None) -> list[Run]:
    """The runs that fit, newest first."""
    wanted = query or RunQuery()
    return await store.read(lambda view: view.runs(wanted))
