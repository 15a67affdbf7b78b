from __future__ import annotations

from benchmarks.worker_pace import middle_rate


def test_the_rate_is_that_of_the_middle_where_nobody_starts_or_is_done() -> None:
    marks = [(0.0, 0), (2.0, 10), (3.0, 20), (4.0, 50), (5.0, 80), (9.0, 100)]
    assert middle_rate(marks, 100) == 30.0


def test_what_was_over_between_two_looks_is_counted_from_the_beginning() -> None:
    assert middle_rate([(0.0, 0), (0.5, 100)], 100) == 200.0
    assert middle_rate([(0.0, 0), (0.5, 50), (1.0, 100)], 100) == 100.0
