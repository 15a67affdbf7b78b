"""A check, its result, what is found of checks in a project, and test runs that ran no test."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.core.forge import check_passed
from podium.core.model import FrozenModel, NonEmpty


class Check(FrozenModel):
    """A command that tells whether the project is in order."""

    name: NonEmpty
    command: NonEmpty
    """A shell line."""
    source: str = ""
    """The file of the project that it was found in. Empty: the settings name it."""


class Detection(FrozenModel):
    """Checks that a project's files speak of."""

    checks: tuple[Check, ...] = ()
    not_installed: tuple[str, ...] = ()
    """Those that lack their tool here, in words."""
    module: str = ""
    """If none can run: the Python module that the first of them lacks. Empty: it lacks a program."""
    not_read: tuple[str, ...] = ()
    """Files that could have named more and were not read or understood, in words."""


class CheckResult(FrozenModel):
    """Result of a check."""

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
    return all(result.passed for result in results)


_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_SUMMARIES = re.compile(
    r"""
      ^Ran[ ](?P<unittest>\d+)[ ]tests?[ ]in[ ]
    | ^NO[ ]TESTS[ ]RAN\b
    | ^[= \t]*(?:no[ ]tests[ ]ran|\d+[ ]deselected)(?:,[ ]\d+[ ]warnings?)?[ ]in[ ]
    | ^collected[ ]0[ ]items$
    | ^[= \t]*(?P<pytest>\d+)[ ](?:passed|failed|skipped|xfailed|xpassed|errors?)\b[^\n]*[ ]in[ ]\d
    | ^[ \t]*(?P<mocha>\d+)[ ](?:passing|failing|pending)\b
    | ^No[ ]tests?[ ](?:files?[ ])?found\b
    | ^[ \t]*Tests:?[ \t][^\n|]*?\b(?P<jest>\d{1,9})[ ](?:passed|failed|skipped|todo)\b
    | ^(?:\#|ℹ)[ ]tests[ ](?P<node>\d+)$
    | ^[ \t]*(?P<bun>\d+)[ ](?:pass|fail)$
    | ^[ \t]*(?:ok|FAILED)[ ]\|[ ](?P<deno>\d+)[ ]passed
    | ^No[ ]test[ ]modules[ ]found
    | ^\?[ \t]+\S+[ \t]+\[no[ ]test[ ]files\]
    | ^ok[ \t]+\S+[ \t][^\n]*\[no[ ]tests[ ]to[ ]run\]
    | ^(?P<go>ok|FAIL|---[ ](?:PASS|FAIL):)[ \t]+\S+
    | ^[ \t]*(?:running|Starting)[ ](?P<cargo>\d+)[ ]tests?\b
    | ^(?:\[\w+\][ ])?Tests[ ]run:[ ](?P<maven>\d+),
    | ^(?:\[\w+\][ ])?No[ ]tests[ ]to[ ]run
    | ^>[ ]Task[ ]\S*[tT]est[ ]NO-SOURCE
    | ^(?P<gradle>>[ ]Task[ ]\S*[tT]est)\b
    | ^(?P<examples>\d+)[ ](?:examples?|runs|tests?|specs?),[ ]\d+[ ](?:failures?|assertions)
    | ^No[ ](?:tests[ ]executed!|tests[ ]were[ ]found!!!|specs[ ]found|examples[ ]found)
    | ^There[ ]are[ ]no[ ]tests[ ]to[ ]run
    | ^OK[ ]\((?P<phpunit>\d+)[ ]tests?,
    | ^Tests:[ ](?P<phpunit_failed>\d+),[ ]Assertions:
    | ^\d+%[ ]tests[ ]passed,[ ]\d+[ ]tests?[ ]failed[ ]out[ ]of[ ](?P<ctest>\d+)
    | ^[ \t]*Total[ ]tests:[ ](?P<dotnet>\d+)
    | ^(?:Passed|Failed)![ \t][^\n]*\bTotal:[ \t]*(?P<dotnet_quiet>\d+)
    | ^No[ ]test[ ]is[ ]available[ ]in
    | ^Result:[ ]NOTESTS
    | ^[ \t]*Executed[ ](?P<swift>\d+)[ ]tests?
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Lines that tell how many tests ran. A line without a number that counts says that there were none."""


def ran_no_tests(output: str) -> bool:
    """True when the summaries in a check's output speak of tests, and of none that ran.

    Several runs in one output count together. What prints no summary of tests, such as a linter, a
    build or a script of the project's own, is not judged.
    """
    plain = _ESCAPES.sub("", output).replace("\r\n", "\n")
    summaries = [match.lastgroup and match[match.lastgroup] for match in _SUMMARIES.finditer(plain)]
    return bool(summaries) and all(count in (None, "0") for count in summaries)
