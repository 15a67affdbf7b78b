"""Reading of test output: names of failed tests, how many ran, whether they could be loaded, and whether two runs failed alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_FAILED = 200
_MAX_NAME = 300
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FAILED = re.compile(
    r"""
      ^(?:FAILED|ERROR)[ ](?P<pytest>[^\s:(]+(?:::[^\n]+?)?)(?:[ ]-[ ][^\n]*)?$
    | ^(?:FAIL|ERROR):[ ](?P<unittest>\w+[ ]\([\w.<>]+\)[^\n]*)$
    | ^[ \t]*---[ ]FAIL:[ ](?P<go>\S+)
    | ^[ \t]*not[ ]ok[ ]\d+[ ](?:-[ ])?(?P<tap>[^\n#]+)
    | ^test[ ](?P<cargo>\S+)[ ]\.\.\.[ ]FAILED$
    | ^[ \t]*●[ ](?P<jest>[^\n]+)$
    | ^[ \t]*✖[ ](?P<node>[^\n]+?)[ ]\(\d[\d.]*ms\)$
    """,
    re.VERBOSE | re.MULTILINE,
)
_COUNTS = re.compile(
    r"""
      ^[= \t]*(?=[^\n]*[ ]in[ ]\d)(?:\d+[ ]\w+(?:,[ ])?)+[^\n]*$
    | ^[ \t]*Tests:?[ \t]+(?=[^\n]*(?:passed|failed|skipped|todo))[^\n]*$
    | ^test[ ]result:[ ][^\n]*$
    | ^[ \t]*\d+[ ](?:passing|failing|pending)\b[^\n]*$
    | ^(?:Passed|Failed)![ \t][^\n]*$
    | ^(?:\#|ℹ)[ ](?:pass|fail|skipped)[ ]\d+$
    | ^[= \t]*no[ ]tests[ ]ran\b[^\n]*$
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Lines that count tests by how they ended."""
_COUNT = re.compile(
    r"(\d+) (?:passed|failed|passing|failing)\b|\b(?:Passed|Failed): +(\d+)|[#ℹ] (?:pass|fail) (\d+)"
)
_TOTALS = (
    (re.compile(r"^Ran (\d+) tests? in [^\n]*\n+(?:OK|FAILED)([^\n]*)", re.MULTILINE),
     re.compile(r"(?:skipped|expected failures|unexpected successes)=(\d+)")),
    (re.compile(r"^(?:\[\w+\] )?Tests run: (\d+),([^\n]*)", re.MULTILINE), re.compile(r"Skipped: (\d+)")),
    (re.compile(r"^(\d+) (?:examples?|runs|tests?|specs?), \d+ (?:failures?|assertions)([^\n]*)", re.MULTILINE),
     re.compile(r"(\d+) (?:pending|skips)")),
    (re.compile(r"^(?:OK \(|Tests: )(\d+)(?: tests?)?, (?:Assertions: )?\d+([^\n]*)", re.MULTILINE),
     re.compile(r"(?:Skipped|Incomplete): (\d+)")),
)  # fmt: skip
"""Lines with the number of all tests, and what tells in the rest of the line which of them did not run."""
_PACKAGES = re.compile(r"^(?:ok[ ]*|FAIL)\t\S+\t(?!\[)(?![^\n]*\[no tests)", re.MULTILINE)
"""Packages of Go with tests."""
_PROGRESS = re.compile(r"^(?:\S+\.py )?([.FEsxX]+) +\[ *\d+%\]$", re.MULTILINE)
"""Progress of pytest, which is all that it prints with two `-q`."""
_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+\.\d+\s?m?s\b|:\d+(?::\d+)?\b|\bline \d+|/tmp/\S+")
"""Parts of an output that differ between two runs of the same tests."""

_PYTEST = re.compile(r"^(FAILED|ERROR) ([^\s:(]+(?:::[^\n]+?)?)(?: - ([^\n]*))?$", re.MULTILINE)
_RAISED = re.compile(r"^[^\s:]+:\d+: (\w+)$", re.MULTILINE)
"""Last line of a failure in pytest's output: where, and which error."""
_UNITTEST = re.compile(
    r"^={20,}\n(?:FAIL|ERROR): ([^\n]+)\n(.*?)(?=^={20,}$|^-{20,}\n(?:\n)?Ran |\Z)",
    re.MULTILINE | re.DOTALL,
)
_ABSENT = re.compile(
    r"ImportError|ModuleNotFoundError|SyntaxError|IndentationError|TabError|NameError|_FailedTest"
    r"|AttributeError: (?:partially initialized )?module |fixture '[^']*' not found"
)
_NOT_LOADED = re.compile(
    r"Failed to import test module|errors? during collection|^ERROR collecting |INTERNALERROR>"
    r"|\[(?:build|setup) failed\]|SyntaxError: |ERR_MODULE_NOT_FOUND|Cannot find (?:module|package) "
    r"|could not compile |ModuleNotFoundError: |ImportError: ",
    re.MULTILINE,
)


def failed_tests(output: str) -> tuple[str, ...]:
    """Names of the tests that failed, as the runners known here print them. Empty: none, or another runner."""
    plain = _plain(output)
    names = (str(match[match.lastgroup or 0]).strip() for match in _FAILED.finditer(plain))
    return tuple(dict.fromkeys(name[:_MAX_NAME] for name in names))[:MAX_FAILED]


def executed_tests(output: str) -> int | None:
    """Number of tests that ran to their end: neither skipped nor expected to fail. None: the output does not tell.

    Errors of pytest are not counted: one that comes after a test would make two of it.
    """
    plain = _plain(output)
    counts = [
        sum(int(next(filter(None, match.groups()))) for match in _COUNT.finditer(line[0]))
        for line in _COUNTS.finditer(plain)
    ]
    for total, left_out in _TOTALS:
        counts += [
            int(match[1]) - sum(map(int, left_out.findall(match[2])))
            for match in total.finditer(plain)
        ]
    counts += [1 for _ in _PACKAGES.finditer(plain)]
    if not counts:
        counts = [len(re.findall("[.F]", line[1])) for line in _PROGRESS.finditer(plain)]
    return sum(counts) if counts else None


def failures(output: str) -> Iterator[tuple[str, str]]:
    """Name and reason of each failure that pytest or unittest tells in detail."""
    plain = _plain(output)
    by_pytest = list(_PYTEST.finditer(plain))
    raised = _RAISED.findall(plain)
    if len(raised) != len(by_pytest):
        raised = [""] * len(by_pytest)
    for match, error in zip(by_pytest, raised, strict=True):
        # What fails outside of a test is no failed assertion of it.
        outside = "ImportError: outside of a test" if match[1] == "ERROR" else ""
        # The reason is cut to the width of a terminal.
        yield match[2], outside or f"{match[3] or ''} {error}".strip()
    for match in _UNITTEST.finditer(plain):
        lines = [line for line in match[2].splitlines() if line.strip(" -")]
        yield (
            match[1],
            f"{'_FailedTest ' * ('_FailedTest' in match[1])}{lines[-1] if lines else ''}",
        )


def never_ran(output: str) -> str:
    """The line that says why no test came as far as to fail by itself. Empty: one did, or nothing is known of it."""
    reasons = list(failures(output))
    if reasons:
        by_itself = [name for name, reason in reasons if not _ABSENT.search(reason)]
        return "" if by_itself else (_line(output, _ABSENT) or reasons[0][1] or reasons[0][0])
    return _line(output, _NOT_LOADED)


def _line(output: str, pattern: re.Pattern[str]) -> str:
    lines = [line.strip() for line in _plain(output).splitlines() if pattern.search(line)]
    return lines[-1][:_MAX_NAME] if lines else ""


def _plain(output: str) -> str:
    return _ESCAPES.sub("", output).replace("\r\n", "\n")


def steady_output(output: str) -> str:
    """The output without times, addresses and line numbers, which differ between two runs of the same tests."""
    return _VARIES.sub("#", _plain(output))
