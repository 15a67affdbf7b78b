"""Lookup of a full id from what a person typed, or an error that lists candidates."""

from __future__ import annotations

from podium.core.errors import AmbiguousId, BadInput, UnknownId
from podium.core.ids import SHORTEST_TAIL
from podium.ports import StoreView


def find_id(view: StoreView, kind: str, text: str) -> str:
    """The id of the `run` or `approval` that `text` stands for.

    Raises `UnknownId`, or `AmbiguousId` with the candidates.
    """
    ids = view.find_ids(kind, text.strip())
    if not ids and len(text.strip()) < SHORTEST_TAIL:
        raise BadInput(
            f"{text!r} is too short for a {kind}; type at least {SHORTEST_TAIL} characters of its id"
        )
    if not ids:
        raise UnknownId(kind, text)
    if len(ids) > 1:
        raise AmbiguousId(kind, text, ids)
    return ids[0]


def find_call_key(view: StoreView, text: str) -> str:
    """The key of the call that `text` stands for, with RUN of `RUN:step:<12 hex>.<n>` made whole."""
    run, colon, rest = text.strip().partition(":")
    if not colon:
        raise BadInput(
            f"{text!r} is not a call; copy its key (RUN:step:<12 hex>.<n>) from `podium show RUN`"
        )
    return f"{find_id(view, 'run', run)}:{rest}"
