"""Results of a project's checks, as events, reports and pull requests carry them."""

from __future__ import annotations

from collections.abc import Mapping

from podium.domain.model import Json


def check_passed(result: Mapping[str, Json]) -> bool:
    """True for exit code 0, unless it was a test run without a single test: that proves nothing."""
    return result.get("exit_code") == 0 and not result.get("ran_no_tests")


def check_ending(result: Mapping[str, Json]) -> str:
    """How a check ended, in a few words: `exit 0`, `exit 0, ran 0 tests`, `exit 1 (before this work: exit 1)`."""
    before = f" (before this work: {result['before']})" if result.get("before") else ""
    return f"{_ending(result)}{before}"


def _ending(result: Mapping[str, Json]) -> str:
    if result.get("timed_out"):
        return "took too long"
    code = result.get("exit_code")
    if code is None:
        return "was killed"
    return f"exit {code}, ran 0 tests" if result.get("ran_no_tests") else f"exit {code}"
