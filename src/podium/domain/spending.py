"""The names of the counters that usage is added to and budgets are read from.

Whoever records usage, of a tool or of an agent's turn, counts under these names; whoever judges
a budget reads them. A day is a day in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from podium.domain.gating import Usage

MEASURES = ("input_tokens", "output_tokens", "usd", "turns", "seconds")
"""The figures of `Usage` that are counted."""

CountedScope = Literal["step", "run", "day"]


class Spent(NamedTuple):
    """One record of usage, as sums over many of them need it."""

    position: int
    at: datetime
    flow: str
    source: str
    """`agent:NAME` or `tool:NAME`."""
    usd: float
    tokens: int
    complete: bool
    """Whether all of its figures are known."""


_SCOPES: tuple[CountedScope, ...] = ("step", "run", "day")


def usage_counter(
    measure: str, scope: CountedScope, run_id: str, step_key: str, at: datetime
) -> str:
    """Name of one counter, such as `usd:run:run_…` or `turns:day:2031-05-04`."""
    if scope == "day":
        return f"{measure}:day:{at.date().isoformat()}"
    if scope == "run":
        return f"{measure}:run:{run_id}"
    return f"{measure}:step:{run_id}:{step_key}"


def usage_counted(
    counted: Callable[[str], float], scope: CountedScope, run_id: str, step_key: str, at: datetime
) -> Usage:
    """What was used of a scope; `counted` gives the sum of a counter."""
    figures = {
        measure: counted(usage_counter(measure, scope, run_id, step_key, at))
        for measure in MEASURES
    }
    return Usage.model_validate(figures)


def counts_of(
    usage: Usage, run_id: str, step_key: str, at: datetime
) -> Iterator[tuple[str, float]]:
    """Counter names and what to add to each; figures that are zero are left out."""
    for measure in MEASURES:
        amount = float(getattr(usage, measure))
        if amount:
            for scope in _SCOPES:
                yield usage_counter(measure, scope, run_id, step_key, at), amount
