"""Test runs without a test: told by what test runners print, since many of them exit with 0."""

from __future__ import annotations

import re

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
    """Whether the summaries in a check's output speak of tests, and of none that ran.

    Several runs in one output count together. What prints no summary of tests, such as a linter, a
    build or a script of the project's own, is not judged.
    """
    plain = _ESCAPES.sub("", output).replace("\r\n", "\n")
    summaries = [found.lastgroup and found[found.lastgroup] for found in _SUMMARIES.finditer(plain)]
    return bool(summaries) and all(count in (None, "0") for count in summaries)
