"""A measured figure, its target, and how a table of them is printed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the report. `ours` and `floor` are of the same unit; the ratio is what counts."""

    name: str
    ours: float
    unit: str
    floor: float | None = None
    floor_name: str = ""
    most_ratio: float | None = None
    most: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if not self.floor else self.ours / self.floor

    @property
    def verdict(self) -> str:
        limits = [
            value <= limit
            for value, limit in ((self.ratio, self.most_ratio), (self.ours, self.most))
            if limit is not None and value is not None
        ]
        return "" if not limits else "ok" if all(limits) else "MISSED"

    def line(self) -> str:
        against = f"{self.floor:10.3f} {self.floor_name}" if self.floor else ""
        ratio = f"{self.ratio:6.2f}x" if self.ratio is not None else ""
        wanted = f"<= {self.most_ratio:g}x" if self.most_ratio is not None else ""
        if self.most is not None:
            wanted = f"<= {self.most:g} {self.unit}"
        return (
            f"{self.name:<46}{self.ours:10.3f} {self.unit:<4} {against:<34}"
            f"{ratio:>8}  {wanted:<12}{self.verdict}"
        ).rstrip()


def median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds)


def percentile(seconds: Sequence[float], part: float) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
