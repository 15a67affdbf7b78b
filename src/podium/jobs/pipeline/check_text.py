"""Text about the results of checks, for prompts and people."""

from __future__ import annotations

from collections.abc import Sequence

from podium.app.checks import CheckResult
from podium.core.forge import check_ending

_TAIL_CHARACTERS = 4_000
_NO_TESTS = (
    "ran 0 tests, which proves nothing and counts as failed. Make this very command find tests: their file names, folders "
    "and imports decide that; where the command itself is wrong for this project, say so in `disputed_checks`"
)


def results_line(results: Sequence[CheckResult]) -> str:
    """One line for people: what ran and how it ended."""
    if not results:
        return "no checks"
    return ", ".join(
        f"`{result.command}` {check_ending(result.model_dump())}" for result in results
    )


def failed_checks_text(results: Sequence[CheckResult]) -> str:
    """Each failed check with the end of its output, for the role that has to make it pass."""
    return "\n\n".join(
        f"`{result.command}` {_NO_TESTS if result.ran_no_tests else 'failed'}{_base_note(result)}:\n"
        f"{result.tail[-_TAIL_CHARACTERS:]}"
        for result in results
        if not result.passed
    )


def _base_note(result: CheckResult) -> str:
    if not result.before:
        return ""
    was = "red" if result.red_before else "green"
    return f" (it was {was} before this work: {result.before})"
