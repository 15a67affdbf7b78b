"""Choice and order of the files named in a plan that are shown, and of their lines."""

from __future__ import annotations

import pytest

from podium.jobs.pipeline.quoted_files import (
    MARGIN_LINES,
    NamedFile,
    excerpts,
    named_files,
    resolved,
)

PLAN = """# Plan

## Reference documents
- README.rst: describes the option; setup.cfg

## Detailed logic
`src/parser.py`, lines 198–259: `parse` takes the last value. `src/cli.py` is unchanged.
- its caller at line 300 stays

## Documentation to update
README.rst: nothing. CHANGES.md: one entry.

## Expected deliverables
- tests/test_parser.py
- src/parser.py
"""


def paths(plan: str, *reports: str) -> list[str]:
    return [file.path for file in named_files(plan, reports)]


def test_what_is_delivered_comes_first_and_what_does_not_change_is_left_out() -> None:
    assert paths(PLAN, "See src/cli.py and src/lexer.py.") == [
        "tests/test_parser.py", "src/parser.py", "CHANGES.md", "setup.cfg", "src/lexer.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "is_named"),
    [
        ("README.rst: nothing", False),
        ("README.rst: no change", False),
        ("README.rst stays as it is", False),
        ("README.rst is not changed; calc.py is", False),
        ("None: README.rst does not describe the limits.", False),
        ("None. Its place would be README.rst, which says nothing of it.", False),
        ("- None\n- README.rst is written for users", False),
        ("README.rst: not needed", False),
        ("README.rst does not mention it", False),
        ("README.rst: nothing but the new option", True),
        ("README.rst: the new option; the rest is unchanged", True),
        ("README.rst: nothing here\nREADME.rst: the new option", True),
    ],
)
def test_a_file_is_left_out_only_where_the_plan_says_of_it_that_it_does_not_change(
    line: str, is_named: bool
) -> None:
    assert ("README.rst" in paths(f"# Plan\n\n## Documentation to update\n{line}\n")) is is_named


def test_without_a_plan_the_reports_name_the_files() -> None:
    assert named_files("", ["The cause is in calc.py."]) == [NamedFile("calc.py")]


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("`a.py` (lines 198–259)", [(198, 259)]),
        ("a.py:12-14 and b.py:3", [(12, 14)]),
        ("`a.py`:7", [(7, 7)]),
        ("a.py lines 3, 9 to 11 and 20", [(3, 3), (9, 11), (20, 20)]),
        ("a.py, L4-L6", [(4, 6)]),
        ("In lines 5-6 of a.py", [(5, 6)]),
        ("a.py\n- line 8", [(8, 8)]),
        ("a.py\n## Other\n- line 8", []),
        ("a.py takes 3 values, lines 9-2", []),
    ],
)
def test_lines_belong_to_the_file_that_is_named_before_them(
    text: str, ranges: list[tuple[int, int]]
) -> None:
    (named,) = [file for file in named_files(text) if file.path == "a.py"]
    assert list(named.ranges) == ranges


def test_an_excerpt_has_a_margin_and_ends_where_there_is_no_more_room() -> None:
    content = "".join(f"line {number}\n" for number in range(1, 101))
    ((first, text),) = excerpts(content, [(50, 52), (55, 55)], 4_000)
    assert first == 50 - MARGIN_LINES
    assert text.splitlines()[-1] == f"line {55 + MARGIN_LINES}"
    ((first, text),) = excerpts(content, [(1, 2), (90, 200)], 25)
    assert (first, text) == (1, "line 1\nline 2\nline 3\n")
    assert excerpts(content, [(500, 510)], 4_000) == []


def test_of_a_change_log_the_head_is_shown_whatever_its_file_is_called() -> None:
    plan = "# Plan\n\n## Expected deliverables\n- calc.py\n- CHANGELOG: one entry\n"
    named = named_files(plan)
    assert [item.pathspecs for item in named] == [
        (":(literal)calc.py",),
        (":(literal)CHANGELOG", ":(glob)CHANGELOG.*"),
    ]
    there = resolved(named, ["CHANGELOG.md", "calc.py"])
    assert there == [NamedFile("calc.py"), NamedFile("CHANGELOG.md", ((1, 20),))]
    ((first, text),) = excerpts("line\n" * 500, there[1].ranges, 8_000)
    assert (first, text.count("line")) == (1, 20 + MARGIN_LINES)
