"""CPU that the tests of each kind may cost: `tests/budget.json`, which `make budget` writes.

A machine's speed is taken out by a fixed piece of work that is measured between the tests, under the same load.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("budget.json")

_GROWTH = 1.1
_NOISE_SECONDS = 5.0
"""A kind may grow by so much without a warning: single seconds differ from run to run."""


@dataclass(frozen=True)
class Cost:
    cpu: float
    tests: int


@dataclass(frozen=True)
class Costs:
    """Cost of one whole run, by kind of test."""

    calibration: float
    """CPU seconds of the fixed piece of work."""
    kinds: dict[str, Cost]

    @classmethod
    def measured(cls, kinds: dict[str, Cost], calibrations: Sequence[float]) -> Costs:
        return cls(statistics.median(calibrations), kinds)

    @classmethod
    def from_json(cls, text: str) -> Costs:
        data = json.loads(text)
        kinds = {kind: Cost(**cost) for kind, cost in data["kinds"].items()}
        return cls(data["calibration"], kinds)

    def to_json(self) -> str:
        kinds = {
            kind: {"cpu": round(cost.cpu, 1), "tests": cost.tests}
            for kind, cost in self.kinds.items()
        }
        data = {"calibration": round(self.calibration, 6), "kinds": kinds}
        return json.dumps(data, indent=2) + "\n"

    @property
    def total(self) -> Cost:
        costs = self.kinds.values()
        return Cost(sum(cost.cpu for cost in costs), sum(cost.tests for cost in costs))


def growth(budget: Costs, run: Costs) -> Iterator[str]:
    """A warning for the sum and for each kind that costs a tenth more than its budget on this machine."""
    speed = run.calibration / budget.calibration
    for kind, cost in {**run.kinds, "all": run.total}.items():
        old = budget.total if kind == "all" else budget.kinds.get(kind, Cost(0.0, 0))
        allowed = old.cpu * speed
        if cost.cpu > max(allowed * _GROWTH, allowed + _NOISE_SECONDS):
            yield (
                f"WARNING: tests of kind {kind!r} cost {cost.cpu:.0f} CPU seconds, {allowed:.0f} are in the budget "
                f"({cost.tests} tests, {old.tests} in the budget); `make budget` records a new one"
            )


def calibration() -> float:
    """Measure the fixed piece of work: CPU seconds, a few thousandths."""
    began = time.thread_time()
    total = 0
    for number in range(40_000):
        total += number % 7
    return time.thread_time() - began
