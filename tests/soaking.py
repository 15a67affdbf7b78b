"""Cases of the same path, at some cost each: one of a kind is tried every time, the rest by `make soak`."""

from __future__ import annotations

import os
from typing import Any

import pytest


def in_soak(*values: Any) -> Any:
    """Values of a parametrised test that only `make soak` tries."""
    return pytest.param(*values, marks=pytest.mark.soak)


def examples(count: int) -> int:
    """Return how many examples of a property are tried: all by `make soak`, a fifth every time."""
    searching = os.environ.get("HYPOTHESIS_PROFILE") == "searching"
    return count if searching else max(count // 5, 5)
