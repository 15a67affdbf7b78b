"""Checks of a project: the commands that must succeed before work is accepted. Found, tried and run in the sandbox."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.app.checks.check import (
        ADVICE,
        Check,
        CheckResult,
        CheckRunner,
        Detection,
        RunCheck,
        all_passed,
        cannot_test,
        missing_programs,
        named_checks,
        ran_no_tests,
        remedy_for,
    )
    from podium.app.checks.detection import detect, detect_all, detect_in, probe_in
    from podium.app.checks.project_checks import ChecksReport, CheckTrial, ProjectChecks

__all__ = [
    "ADVICE",
    "Check",
    "CheckResult",
    "CheckRunner",
    "CheckTrial",
    "ChecksReport",
    "Detection",
    "ProjectChecks",
    "RunCheck",
    "all_passed",
    "cannot_test",
    "detect",
    "detect_all",
    "detect_in",
    "missing_programs",
    "named_checks",
    "probe_in",
    "ran_no_tests",
    "remedy_for",
]

export_lazily(
    __name__,
    {
        "ADVICE": "check",
        "Check": "check",
        "CheckResult": "check",
        "CheckRunner": "check",
        "CheckTrial": "project_checks",
        "ChecksReport": "project_checks",
        "Detection": "check",
        "ProjectChecks": "project_checks",
        "RunCheck": "check",
        "all_passed": "check",
        "cannot_test": "check",
        "detect": "detection",
        "detect_all": "detection",
        "detect_in": "detection",
        "missing_programs": "check",
        "named_checks": "check",
        "probe_in": "detection",
        "ran_no_tests": "check",
        "remedy_for": "check",
    },
)
