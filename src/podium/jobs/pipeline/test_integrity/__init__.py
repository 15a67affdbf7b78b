"""Test integrity: comparison of the tests and checks of a branch with those of its base."""

from __future__ import annotations

from podium.jobs.pipeline.test_integrity.check_settings import is_check_settings
from podium.jobs.pipeline.test_integrity.comparison import (
    compare,
    is_relevant,
    is_test_path,
    stopping,
)
from podium.jobs.pipeline.test_integrity.findings import (
    FileVersions,
    IntegrityFinding,
    make_finding,
)

__all__ = [
    "FileVersions",
    "IntegrityFinding",
    "compare",
    "is_check_settings",
    "is_relevant",
    "is_test_path",
    "make_finding",
    "stopping",
]
