"""Receipts, those that are there and those to come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial

from podium.domain.events import ToolAbandoned, ToolCompleted, ToolFailed, ToolInDoubt
from podium.domain.gating import Receipt
from podium.ports import EventQuery, Store, View
from podium.usecases.find_id import find_id

SETTLING = ("tool_completed", "tool_failed", "tool_in_doubt", "tool_abandoned")
PAGE = 500


async def list_receipts(store: Store, run: str | None = None) -> list[Receipt]:
    """The receipts of a run, or of all, in the order of their chains."""
    return await store.read(lambda view: view.receipts(_run_id(view, run)))


async def follow_receipts(store: Store, run: str | None = None) -> AsyncIterator[Receipt]:
    """Every receipt from now on, of a run or of all, as it is committed by any process. Never ends."""
    run_id, position = await store.read(lambda view: (_run_id(view, run), view.last_position()))
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            more = True
            while more:
                found, behind, more = await store.read(partial(_settled, run_id, position))
                position = behind
                for receipt in found:
                    yield receipt


def _run_id(view: View, run: str | None) -> str | None:
    return None if run is None else find_id(view, "run", run)


def _settled(run_id: str | None, position: int, view: View) -> tuple[list[Receipt], int, bool]:
    """Receipts of the events behind a position, the position reached, and whether there may be more."""
    query = EventQuery(run_id=run_id, types=SETTLING, after_position=position, limit=PAGE)
    events = view.events(query)
    wanted: dict[str, set[int]] = {}
    for event in events:
        body = event.body
        if isinstance(body, ToolCompleted | ToolFailed | ToolInDoubt | ToolAbandoned):
            wanted.setdefault(event.run_id, set()).add(body.receipt or 0)
    receipts = [
        receipt
        for run, numbers in wanted.items()
        for receipt in view.receipts(run)
        if receipt.number in numbers
    ]
    reached = events[-1].position if events else position
    return sorted(receipts, key=lambda one: one.settled_at), reached, len(events) == PAGE
