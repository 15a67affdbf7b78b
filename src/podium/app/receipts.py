"""Receipts: list, follow, verify the chains, and find one that can be undone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from podium.app.id_lookup import find_id
from podium.core.decisions import Receipt, undo_counter, undone_by
from podium.core.errors import BadInput, NotPossibleNow
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
    # Late: who looks for a receipt to undo loads no classes of events.
    from podium.core.events import ToolAbandoned, ToolCompleted, ToolFailed, ToolInDoubt

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
    """A problem with a receipt, as it is shown."""

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


class ReceiptRecord(Protocol):
    """The application, as far as a proof of its receipts needs it."""

    @property
    def database(self) -> Path: ...
    @property
    def database_url(self) -> str: ...
    @property
    def receipt_key(self) -> Path: ...
    @property
    def has_heads(self) -> bool: ...

    async def store(self, *, although_lost: bool = False) -> Store: ...
    async def verifier(self) -> Verifier: ...


async def proven(podium: ReceiptRecord, run: str | None = None) -> Verdict:
    """Check all chains, and report on one run or on all of them.

    Raises `UnknownId`, `RecordLost` where nothing is left to check, and `NotPossibleNow` where the key is missing: without it no receipt can be told
    from a forged one.
    """
    from podium.store import is_empty

    store = await podium.store(although_lost=not (podium.database_url or is_empty(podium.database)))
    if podium.receipt_key.exists():
        return await verify_receipts(store, await podium.verifier(), run)
    await list_receipts(store, run)  # an unknown run is an error here too
    if await list_receipts(store) or podium.has_heads:
        raise NotPossibleNow(
            f"the key of the receipts is missing: {str(podium.receipt_key)!r}; restore it from a "
            "backup, or copy it from the machine or home folder that the project came from. "
            "Until then no receipt can be verified"
        )
    return Verdict(runs=0, receipts=0)


_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


async def find_undoable(store: Store, text: str) -> Receipt:
    """The receipt that `RUN#NUMBER` names, to be reversed.

    Raises `BadInput` for a name that fits nothing and `NotPossibleNow` for a receipt of something that
    was not done, cannot be taken back, or was taken back already.
    """
    return await store.read(lambda view: _undoable(view, text))


def _undoable(view: StoreView, text: str) -> Receipt:
    receipt = _named(view, text)
    name = f"receipt {receipt.number} of run {receipt.run_id} ({receipt.tool})"
    if receipt.status != "completed":
        raise NotPossibleNow(f"{name} is {receipt.status}, so there is nothing to undo")
    if receipt.undo is None:
        raise NotPossibleNow(f"{name} cannot be undone: no inverse is recorded on it")
    done = _undone(view, f"{receipt.run_id}#{receipt.number}")
    if done is not None:
        raise NotPossibleNow(
            f"{name} was undone already, by receipt {done.number} of run {done.run_id}"
        )
    return receipt


def _undone(view: StoreView, name: str) -> Receipt | None:
    """Receipt of the undo, if any. All receipts are searched only if the counter says so."""
    if view.counted(undo_counter(name), _BEGINNING) <= 0:
        return None
    return undone_by(view.receipts(), name)


def _named(view: StoreView, text: str) -> Receipt:
    run, separator, number = text.strip().partition("#")
    if not separator or not number.isdecimal():
        raise BadInput(
            f"{text!r} is not a receipt; use RUN#NUMBER as shown by `podium receipts list`"
        )
    run_id = find_id(view, "run", run)
    for receipt in view.receipts(run_id):
        if receipt.number == int(number):
            return receipt
    raise BadInput(f"run {run_id} has no receipt {number}; `podium receipts list {run}` lists them")
