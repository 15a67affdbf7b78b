"""Checks of a project: the commands that must succeed before work is accepted. Found, tried and run in the sandbox."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.app.checks.check import (
        ADVICE,
        SET_UP,
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
        red_alike,
        remedy_for,
        speaks_of_tests,
        why_not_runnable,
    )
    from podium.app.checks.detection import detect, detect_all, detect_in, probe_in
    from podium.app.checks.project_checks import ChecksReport, CheckTrial, ProjectChecks
    from podium.app.checks.runner_output import executed_tests, failed_tests, never_ran

__all__ = [
    "ADVICE",
    "SET_UP",
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
    "executed_tests",
    "failed_tests",
    "missing_programs",
    "named_checks",
    "never_ran",
    "probe_in",
    "ran_no_tests",
    "red_alike",
    "remedy_for",
    "speaks_of_tests",
    "why_not_runnable",
]

export_lazily(
    __name__,
    {
        "ADVICE": "check",
        "SET_UP": "check",
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
        "executed_tests": "runner_output",
        "failed_tests": "runner_output",
        "missing_programs": "check",
        "named_checks": "check",
        "never_ran": "runner_output",
        "probe_in": "detection",
        "ran_no_tests": "check",
        "red_alike": "check",
        "remedy_for": "check",
        "speaks_of_tests": "check",
        "why_not_runnable": "check",
    },
)
