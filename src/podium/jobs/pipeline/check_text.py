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


def in_words(results: Sequence[CheckResult]) -> str:
    """One line for people: what ran and how it ended."""
    if not results:
        return "no checks"
    return ", ".join(f"`{each.command}` {check_ending(each.model_dump())}" for each in results)


def red_words(results: Sequence[CheckResult]) -> str:
    """What failed, for whoever has to make it pass: each red check with the end of its output."""
    return "\n\n".join(
        f"`{each.command}` {_NO_TESTS if each.ran_no_tests else 'failed'}{_before_words(each)}:\n"
        f"{each.tail[-_TAIL_CHARACTERS:]}"
        for each in results
        if not each.passed
    )


def _before_words(result: CheckResult) -> str:
    if not result.before:
        return ""
    was = "red" if result.red_before else "green"
    return f" (it was {was} before this work: {result.before})"
