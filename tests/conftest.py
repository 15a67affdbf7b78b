"""What holds for the whole suite."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path

import pytest
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


_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 8 << 30
"""More than twice of what the files of all tests take, so that the memory they are in is not missed."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keep the files of a run with several workers in memory where there is enough: a tenth of its time is spent on them."""
    is_worker = hasattr(config, "workerinput")
    if is_worker or not config.option.numprocesses or config.option.basetemp:
        return
    if (
        _MEMORY.is_dir()
        and min(shutil.disk_usage(_MEMORY).free, _available_bytes()) > _ENOUGH_BYTES
    ):
        folder = _MEMORY / f"podium-tests-{os.getpid()}"
        config.option.basetemp = str(folder)
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def _available_bytes() -> int:
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) << 10
