"""Metrics as text: what Prometheus' own parser reads out of it, and bounds on what goes in."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from podium.telemetry.exposition import (
    MAX_SERIES,
    MAX_VALUE,
    OTHER,
    CounterFamily,
    Gauge,
    Histogram,
    MetricFamily,
    exposed,
)


def samples(*families: MetricFamily) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample, as Prometheus reads it."""
    read = text_string_to_metric_families(exposed(families))
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in read
        for sample in family.samples
    }


def test_counters_gauges_and_histograms_are_read_as_what_they_are() -> None:
    counter = CounterFamily("a_total", "What was\ncounted.", ["flow"])
    counter.add("x")
    counter.add("x", amount=2.5)
    gauge = Gauge("b", "How it stands.")
    gauge.put(amount=7)
    histogram = Histogram("c_seconds", "How long.", bounds=(0.1, 1.0))
    for seconds in (0.1, 0.5, 30.0):
        histogram.observe(seconds=seconds)
    assert samples(counter, gauge, histogram) == {
        ("a_total", (("flow", "x"),)): 3.5,
        ("b", ()): 7.0,
        ("c_seconds_bucket", (("le", "0.1"),)): 1.0,
        ("c_seconds_bucket", (("le", "1"),)): 2.0,
        ("c_seconds_bucket", (("le", "+Inf"),)): 3.0,
        ("c_seconds_sum", ()): 30.6,
        ("c_seconds_count", ()): 3.0,
    }
    kinds = [family.type for family in text_string_to_metric_families(exposed([counter, gauge]))]
    assert kinds == ["counter", "gauge"]


@given(st.text())
def test_whatever_a_label_holds_the_page_stays_readable(value: str) -> None:
    counter = CounterFamily("a_total", "Words.", ["model"])
    counter.add(value)
    [((_, ((_, read),)), count)] = samples(counter).items()
    assert count == 1
    assert 0 < len(read) <= MAX_VALUE


def test_quotes_and_backslashes_come_back_as_they_were() -> None:
    counter = CounterFamily("a_total", "Words.", ["model"])
    counter.add('say "hi" \\n')
    assert samples(counter) == {("a_total", (("model", 'say "hi" \\n'),)): 1.0}


def test_names_made_up_without_end_are_counted_together() -> None:
    counter = CounterFamily("a_total", "Words.", ["model"])
    gauge = Gauge("b", "Words.", ["queue"])
    for number in range(MAX_SERIES + 50):
        counter.add(f"model-{number}")
        gauge.put(f"queue-{number}", amount=2)
    read = samples(counter, gauge)
    assert len(read) == 2 * (MAX_SERIES + 1)
    assert read["a_total", (("model", OTHER),)] == 50
    assert read["b", (("queue", OTHER),)] == 100
    counter.add("model-0")
    assert samples(counter)["a_total", (("model", "model-0"),)] == 2


def test_a_counter_never_falls_and_takes_nothing_that_is_no_number() -> None:
    counter = CounterFamily("a_total", "Cost.")
    for amount in (-1.0, math.nan, math.inf):
        counter.add(amount=amount)
    assert samples(counter) == {("a_total", ()): 0.0}


def test_a_duration_below_zero_counts_as_none() -> None:
    histogram = Histogram("c_seconds", "How long.", bounds=(1.0,))
    histogram.observe(seconds=-5.0)
    histogram.observe(seconds=math.nan)
    read = samples(histogram)
    assert (read["c_seconds_sum", ()], read["c_seconds_count", ()]) == (0.0, 1.0)
