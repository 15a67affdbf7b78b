"""The project's checks: what the supervisor runs itself, and how it came out."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from podium.domain.check_results import check_ending, check_passed
from podium.domain.model import NonEmpty, Noun

_TAIL_CHARACTERS = 4_000
_NO_TESTS = (
    "ran 0 tests, which proves nothing and counts as failed. Make this very command find tests: their file names, folders "
    "and imports decide that; where the command itself is wrong for this project, say so in `disputed_checks`"
)


class Check(Noun):
    """A command that tells whether the project is in order."""

    name: NonEmpty
    command: NonEmpty
    """A shell line."""
    source: str = ""
    """The file of the project that it was found in. Empty: the settings name it."""


class Detection(Noun):
    """Checks that a project's files speak of."""

    checks: tuple[Check, ...] = ()
    not_installed: tuple[str, ...] = ()
    """Those that lack their tool here, in words."""
    not_read: tuple[str, ...] = ()
    """Files that could have named more and were not read or understood, in words."""


class Found(Detection):
    """What there was before any agent came."""

    ignored: tuple[str, ...] = ()
    """What the set-up left that git ignores."""
    conventions: dict[str, str] = Field(default_factory=dict)
    """Path → text of what the repository says to agents and contributors."""


class CheckResult(Noun):
    """How a check came out."""

    name: str
    command: str
    exit_code: int | None
    """None: it was ended by a signal, or took too long."""
    seconds: float = 0.0
    output_sha256: str = ""
    tail: str = ""
    """The end of what it wrote."""
    timed_out: bool = False
    ran_no_tests: bool = False
    """It is a test run, and there was no test in it: red, whatever the exit code."""
    before: str = ""
    """Of a red one: how it ended on the base, without the work. Empty: it was not looked at."""
    red_before: bool = False

    @property
    def passed(self) -> bool:
        return check_passed(self.model_dump())


def all_passed(results: Sequence[CheckResult]) -> bool:
    return all(each.passed for each in results)


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
