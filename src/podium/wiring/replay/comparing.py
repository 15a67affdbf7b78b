"""Whether an event that happens again is the one that was recorded, and if not, in what."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from podium.domain.model import Json

OF_THE_PROCESS: dict[str, tuple[str, ...]] = {
    # Which process took the run; each has a name of its own.
    "run_started": ("owner",),
    # What the machine is called.
    "run_pinned": ("host",),
    # Measured by that machine's clock between two of its moments, which are not recorded themselves.
    "step_completed": ("seconds",),
}
"""Type of event → fields that come from where and when it happened. They are taken as recorded."""
ALWAYS_TAKEN = ("at",)
"""The time of each event is given back to the run as it was."""
SMALLEST_SHARE = 1e-12
"""Sums of the same numbers, made by a database and by Python, differ by less than this."""
MOST_FIELDS = 10
LONGEST_SHOWN = 200

_MISSING = object()


@dataclass(frozen=True)
class FieldDifference:
    """One field that is not the same. None stands for a field that is not there."""

    field: str
    recorded: Json
    now: Json


@dataclass(frozen=True)
class Difference:
    """The first event that did not come again as it was recorded."""

    seq: int
    type: str
    fields: tuple[FieldDifference, ...] = ()
    why: str = ""
    """In words, where it is not about fields."""

    def record(self) -> dict[str, Json]:
        return {
            "seq": self.seq,
            "type": self.type,
            "why": self.why,
            "fields": [
                {"field": each.field, "recorded": each.recorded, "now": each.now}
                for each in self.fields
            ],
        }


def as_recorded(now: Json, then: Json, event_type: str) -> dict[str, Json]:
    """The event with what belongs to process, machine and moment taken from the record."""
    taken = (*ALWAYS_TAKEN, *OF_THE_PROCESS.get(event_type, ()))
    return {
        name: then[name] if name in taken and name in then else _near(value, then.get(name))
        for name, value in now.items()
    }


def difference(now: dict[str, Json], then: dict[str, Json]) -> Difference | None:
    """What is not the same. None: nothing."""
    if now == then:
        return None
    fields = tuple(_differing(now, then, ""))[:MOST_FIELDS]
    return Difference(seq=then["seq"], type=then["type"], fields=fields)


def _near(now: Json, then: Json) -> Json:
    """The recorded number where both are the same but for rounding."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {name: _near(value, then.get(name)) for name, value in now.items()}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [_near(*pair) for pair in zip(now, then, strict=True)]
    if isinstance(now, float) and isinstance(then, float):
        return then if math.isclose(now, then, rel_tol=SMALLEST_SHARE) else now
    return now


def _differing(now: Json, then: Json, place: str) -> Iterator[FieldDifference]:
    if isinstance(now, dict) and isinstance(then, dict):
        for name in dict.fromkeys((*then, *now)):
            one, other = now.get(name, _MISSING), then.get(name, _MISSING)
            if one != other:
                yield from _differing(one, other, f"{place}.{name}" if place else name)
    elif isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        for number, (one, other) in enumerate(zip(now, then, strict=True)):
            if one != other:
                yield from _differing(one, other, f"{place}[{number}]")
    else:
        yield FieldDifference(place, _shown(then, now), _shown(now, then))


def _shown(value: Json, other: Json) -> Json:
    """The value; of a long text the part around where it begins to be another one."""
    if value is _MISSING:
        return None
    if not isinstance(value, str) or len(value) <= LONGEST_SHOWN:
        return value
    start = 0
    if isinstance(other, str):
        pairs = zip(value, other, strict=False)
        same = next(
            (at for at, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(value), len(other))
        )
        start = max(0, same - LONGEST_SHOWN // 4)
    part = value[start : start + LONGEST_SHOWN]
    return f"{'…' if start else ''}{part}{'…' if start + LONGEST_SHOWN < len(value) else ''}"
