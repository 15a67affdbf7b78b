"""Bound of what an input of any size may cost, as a ratio and in CPU time: no machine's speed has a part in it."""

from __future__ import annotations

import time
from collections.abc import Callable

_RATIO = 30
"""For ten times the input: linear work costs about 10 times as much, quadratic work 100 times."""
_NOISE_SECONDS = 0.05
_ATTEMPTS = 3


def assert_linear_cost(work: Callable[[int], object], size: int) -> None:
    """Fail when `work(size)` costs more than linear growth from a tenth of the size allows."""
    costs = []
    for _ in range(_ATTEMPTS):
        small, large = _cpu_seconds(work, size // 10), _cpu_seconds(work, size)
        if large <= _RATIO * small + _NOISE_SECONDS:
            return
        costs.append(f"{large:.3f} s against {small:.3f} s")
    raise AssertionError(f"size {size} against a tenth of it costs {', '.join(costs)}")


def _cpu_seconds(work: Callable[[int], object], size: int) -> float:
    began = time.thread_time()
    work(size)
    return time.thread_time() - began
