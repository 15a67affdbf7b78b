"""Tests with a real agent CLI: a few of each every time (`smoke`), all of them by `make live`."""

from __future__ import annotations

import os

import pytest

from tests.timing import saw

ALL = "REAL_CLIS"
"""Set to anything: every test with a real CLI runs."""

_running: list[pytest.Item] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _running[:] = [item]


def skip_unless_wanted(name: str) -> None:
    """Called by whoever looks for a CLI: a start of one costs seconds."""
    chosen = any(item.get_closest_marker("smoke") for item in _running)
    if not chosen and not os.environ.get(ALL):
        pytest.skip(f"{name}: one of many tests with the real CLI, which `make live` runs")
    saw("real CLIs")
