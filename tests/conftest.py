"""Rules of the whole suite."""

from __future__ import annotations

import gc
import os
import sys

from hypothesis import HealthCheck, settings

from tests.soaking import examples

# Where a version manager has put a shim first, each `python3` of a test would start thirty processes.
os.environ["PATH"] = os.pathsep.join([f"{sys.base_prefix}/bin", os.environ.get("PATH", "")])

# How long an example takes says more about the machine than about the change.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A change is judged by the same few examples every time; `make soak` goes looking for new ones.
settings.register_profile(
    "steady", settings.get_profile("unhurried"), derandomize=True, max_examples=examples(100)
)
settings.register_profile("searching", settings.get_profile("unhurried"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

pytest_plugins = (
    "tests.postgres",
    "tests.dispatched",
    "tests.timing",
    "tests.live",
    "tests.soak_parts",
)


def pytest_collection_finish() -> None:
    """Modules and tests live until the end: the collector need not look at half a gigabyte again and again."""
    gc.collect()
    gc.freeze()
