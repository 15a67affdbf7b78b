"""Receipts: list, follow, verify the chain."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Protocol

from podium.app.id_lookup import find_id
from podium.core.decisions import Receipt
from podium.core.events import ToolAbandoned, ToolCompleted, ToolFailed, ToolInDoubt
from podium.core.model import FrozenModel, Json
from podium.ports import EventQuery, Store, StoreView

SETTLEMENT_TYPES = ("tool_completed", "tool_failed", "tool_in_doubt", "tool_abandoned")
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
                receipts, behind, more = await store.read(partial(_settled, run_id, position))
                position = behind
                for receipt in receipts:
                    yield receipt


def _run_id(view: StoreView, run: str | None) -> str | None:
    return None if run is None else find_id(view, "run", run)


def _settled(run_id: str | None, position: int, view: StoreView) -> tuple[list[Receipt], int, bool]:
    """Receipts of the events behind a position, the position reached, and whether there may be more."""
    query = EventQuery(run_id=run_id, types=SETTLEMENT_TYPES, after_position=position, limit=PAGE)
    events = view.events(query)
    numbers_by_run: dict[str, set[int]] = {}
    for event in events:
        body = event.body
        if isinstance(body, ToolCompleted | ToolFailed | ToolInDoubt | ToolAbandoned):
            numbers_by_run.setdefault(event.run_id, set()).add(body.receipt or 0)
    receipts = [
        receipt
        for run, numbers in numbers_by_run.items()
        for receipt in view.receipts(run)
        if receipt.number in numbers
    ]
    reached = events[-1].position if events else position
    return sorted(receipts, key=lambda one: one.settled_at), reached, len(events) == PAGE


class Finding(Protocol):
    """Something wrong with a chain."""

    @property
    def run_id(self) -> str: ...
    @property
    def number(self) -> int | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def problem(self) -> str: ...


Verifier = Callable[[Mapping[str, Sequence[Receipt]]], Sequence[Finding]]
"""Checks the chains of all runs against key and heads."""


class Fault(FrozenModel):
    """A finding, as it is shown."""

    run_id: str
    number: int | None
    kind: str
    problem: str


class Verdict(FrozenModel):
    """Result of verifying receipts."""

    runs: int
    receipts: int
    faults: tuple[Fault, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.faults

    def record(self) -> dict[str, Json]:
        return {"sound": self.sound, **self.model_dump(mode="json")}


async def verify_receipts(store: Store, verifier: Verifier, run: str | None = None) -> Verdict:
    """Check all chains, and report on one run or on all of them."""
    run_id, receipts = await store.read(lambda view: _read(view, run))
    chains: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        chains.setdefault(receipt.run_id, []).append(receipt)
    # All chains go in, whichever run is asked for: a run whose every receipt is gone is still found.
    problems = tuple(
        Fault(run_id=one.run_id, number=one.number, kind=one.kind, problem=one.problem)
        for one in verifier(chains)
        if run_id is None or one.run_id == run_id
    )
    reported = [run_id] if run_id else list(chains)
    count = sum(len(chains.get(one, ())) for one in reported)
    return Verdict(runs=len(reported), receipts=count, faults=problems)


def _read(view: StoreView, run: str | None) -> tuple[str | None, list[Receipt]]:
    return (None if run is None else find_id(view, "run", run)), view.receipts()
