"""Size limits of keys and records, whatever the database is."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from podium.core.decisions import Approval, CallRecord, Receipt
from podium.core.errors import BadInput
from podium.core.work import Run, Schedule, Signal, StepRecord, WorkerHeartbeat

MAX_KEY_BYTES = 1_000
"""Two of them must fit into one entry of an index, which PostgreSQL ends at 2,704 bytes."""

MAX_JSON = 4_000_000
"""Characters of a noun's JSON. To take many secrets out of so many takes about a second, and all
processes on the database wait meanwhile."""

_WRAPPING = 100_000
"""Room around what is passed on: a child's end is a signal that holds its run, and becomes a step."""

_MAX_LENGTH: Mapping[type[BaseModel], int] = {
    Run: MAX_KEY_BYTES + 100,
    StepRecord: MAX_KEY_BYTES + 100,
    CallRecord: MAX_KEY_BYTES + 200,
}
"""Keys that are made of others: of a schedule's name, a signal's, a step's."""

_MAX_SIZE: Mapping[type[BaseModel], int] = {
    Signal: MAX_JSON + _WRAPPING,
    StepRecord: MAX_JSON + 2 * _WRAPPING,
}

_KEYS: Mapping[type[BaseModel], tuple[str, ...]] = {
    Run: ("id", "flow", "queue", "dedup_key", "parent_id"),
    StepRecord: ("run_id", "key"),
    Signal: ("id", "run_id", "name"),
    CallRecord: ("key", "run_id"),
    Approval: ("id", "run_id", "digest"),
    Receipt: ("run_id",),
    Schedule: ("name", "queue"),
    WorkerHeartbeat: ("id",),
}
"""Fields that are looked up by an index."""

_NAMES: Mapping[type[BaseModel], str] = {
    StepRecord: "step",
    CallRecord: "call",
    WorkerHeartbeat: "worker",
}


def refuse_long_keys(model: BaseModel) -> None:
    """Raises `BadInput` when the noun is to be found under a key that no index can hold."""
    for field in _KEYS.get(type(model), ()):
        value = getattr(model, field)
        if value is not None:
            longest = _MAX_LENGTH.get(type(model), MAX_KEY_BYTES)
            refuse_long_key(f"{_name(model)}'s {field}", value, longest)


def refuse_long_key(what: str, key: str, longest: int = MAX_KEY_BYTES) -> None:
    # Counting bytes takes longer than all the rest: most keys are too short for it to matter.
    if 4 * len(key) <= longest:
        return
    size = len(key.encode(errors="surrogatepass"))
    if size > longest:
        raise BadInput(
            f"the {what} {key[:40] + '…'!r} has {size:,} bytes, and the maximum is "
            f"{longest:,}; use a shorter one"
        )


def refuse_heavy(model: BaseModel, serialised: str) -> None:
    """Raises `BadInput` when the noun's JSON is too much to be kept in the record."""
    largest = _MAX_SIZE.get(type(model), MAX_JSON)
    if len(serialised) > largest:
        raise BadInput(
            f"this {_name(model)} has {len(serialised) / 1e6:.1f} MB of JSON, and the maximum is "
            f"{largest / 1e6:.1f} MB; put its content into a file and pass the path"
        )


def _name(model: BaseModel) -> str:
    kind = type(model)
    return _NAMES.get(kind, kind.__name__.lower() if kind in _KEYS else "event")
