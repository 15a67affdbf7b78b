"""Metrics in the Prometheus text format (0.0.4), and those of a store.

A series is never forgotten, so each family takes in a bounded number of them: words come from
models and files too, and a name made up anew for each run would grow until the process ends.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MAX_SERIES = 200
"""Sets of label values that a family tells apart; all later ones are counted as `other`."""

MAX_VALUE = 80

OTHER = "other"

SHORT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Buckets for what a machine does."""

LONG_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
"""Buckets for what agents and people do."""

Labels = tuple[str, ...]


class MetricFamily(ABC):
    """One metric with all its series. `labels` are the names, in the order values are given in."""

    kind = ""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self._help = help
        self._labels = tuple(labels)
        self._series: set[Labels] = set()

    def lines(self) -> Iterator[str]:
        """The family as it is sent, line by line."""
        yield f"# HELP {self.name} {_escaped(self._help)}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self._samples()

    @abstractmethod
    def _samples(self) -> Iterable[str]:
        """Its series, a line each."""

    def _label_values(self, values: Sequence[str]) -> Labels:
        """The label values that a sample is counted under."""
        if len(values) != len(self._labels):
            raise ValueError(f"{self.name} has the labels {self._labels}, not {len(values)} values")
        labels = tuple(_tame(value) for value in values)
        if labels not in self._series:
            if len(self._series) >= MAX_SERIES:
                return (OTHER,) * len(values)
            self._series.add(labels)
        return labels

    def _sample(self, labels: Labels, value: float, suffix: str = "", bound: str = "") -> str:
        pairs = [*zip(self._labels, labels, strict=True), *([("le", bound)] if bound else [])]
        label_text = ",".join(f'{name}="{_quoted(value)}"' for name, value in pairs)
        return (
            f"{self.name}{suffix}{{{label_text}}} {_number(value)}"
            if label_text
            else (f"{self.name}{suffix} {_number(value)}")
        )


class CounterFamily(MetricFamily):
    """A value that only rises. Its name ends in `_total`."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        # A counter without labels is there from the start, so that its first step is seen as one.
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *values: str, amount: float = 1.0) -> None:
        """Count. An amount that is no number, or below zero, is left out: a counter never falls."""
        if math.isfinite(amount) and amount >= 0:
            labels = self._label_values(values)
            self._values[labels] = self._values.get(labels, 0.0) + amount

    def _samples(self) -> Iterator[str]:
        return (self._sample(labels, value) for labels, value in sorted(self._values.items()))


class Gauge(MetricFamily):
    """A value that rises and falls."""

    kind = "gauge"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = {}

    def put(self, *values: str, amount: float) -> None:
        """Say how it stands. What is counted as `other` adds up."""
        labels = self._label_values(values)
        before = self._values.get(labels, 0.0) if labels not in self._series else 0.0
        self._values[labels] = before + amount

    def _samples(self) -> Iterator[str]:
        return (self._sample(labels, value) for labels, value in sorted(self._values.items()))


class Histogram(MetricFamily):
    """Durations: for each bound the number that took no longer."""

    kind = "histogram"

    def __init__(
        self, name: str, help: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> None:
        super().__init__(name, help, labels)
        self._bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, *values: str, seconds: float) -> None:
        """Take in one duration. What a clock that was set back makes negative counts as none."""
        if not math.isfinite(seconds):
            return
        labels, seconds = self._label_values(values), max(seconds, 0.0)
        counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        fitting = (at for at, bound in enumerate(self._bounds) if seconds <= bound)
        counts[next(fitting, len(self._bounds))] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def _samples(self) -> Iterator[str]:
        for labels, counts in sorted(self._counts.items()):
            reached = 0
            for bound, count in zip((*self._bounds, math.inf), counts, strict=True):
                reached += count
                yield self._sample(labels, reached, "_bucket", _number(bound))
            yield self._sample(labels, self._sums[labels], "_sum")
            yield self._sample(labels, reached, "_count")


def exposed(families: Iterable[MetricFamily]) -> str:
    """All of them as one page."""
    return "".join(f"{line}\n" for family in families for line in family.lines())


def _tame(value: str) -> str:
    """A label value: one printable line of bounded length."""
    printable = "".join(character if character.isprintable() else " " for character in value)
    return printable[:MAX_VALUE].strip() or "none"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


class StoreFigures:
    """Counted by the threads that write, read and listen; shown by the metrics page."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits = Histogram(
            "podium_store_commit_seconds",
            "Duration of commits of this process.",
            bounds=SHORT_SECONDS,
        )
        self._reconnects = CounterFamily(
            "podium_store_reconnects_total",
            "Database connections that were lost and established again.",
        )

    def committed(self, seconds: float) -> None:
        """A transaction went through."""
        with self._lock:
            self._commits.observe(seconds=seconds)

    def reconnected(self) -> None:
        """A connection that was lost stands again."""
        with self._lock:
            self._reconnects.add()

    def exposed(self) -> str:
        """The figures in the text format of metrics."""
        with self._lock:
            return exposed((self._commits, self._reconnects))
