"""Receipt of a call that can be undone, found by run and number."""

from __future__ import annotations

from datetime import UTC, datetime

from podium.app.id_lookup import find_id
from podium.core.decisions import Receipt, undo_counter, undone_by
from podium.core.errors import BadInput, NotPossibleNow
from podium.ports import Store, StoreView

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
            f"{text!r} names no receipt; write RUN#NUMBER as `podium receipts list` shows them"
        )
    run_id = find_id(view, "run", run)
    for receipt in view.receipts(run_id):
        if receipt.number == int(number):
            return receipt
    raise BadInput(f"run {run_id} has no receipt {number}; `podium receipts list {run}` lists them")
