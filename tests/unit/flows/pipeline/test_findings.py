"""Findings of a review, and detection of rounds that only repeat them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.jobs.pipeline.findings import MAX_FINDINGS, findings_of, repeats
from tests.linear_cost import assert_linear_cost
from tests.soaking import in_soak

FIRST = """\
# Code review: dark mode, v1

## Summary
The change is small. It has two faults.

## Findings
1. **Major** `src/a.py:12`: the lock is never released.
2. Missing test for empty input (lines 3-5)
   - the plan asks for it
- [x] The changelog was forgotten

## Verdict
FAIL
"""
SECOND = """\
# Code review: dark mode, v2

## Findings

- major src/a.py:120:4: The lock is  never released
- Missing test for empty input (line 77) - the plan asks for it
"""


def texts(review: str) -> list[str]:
    return [item.text for item in findings_of(review)]


def test_text_under_findings_is_found() -> None:
    assert texts(FIRST) == [
        "**Major** `src/a.py:12`: the lock is never released.",
        "Missing test for empty input (lines 3-5)\nthe plan asks for it",
    ]


def test_the_same_findings_in_the_next_round_repeat() -> None:
    assert repeats(findings_of(FIRST), findings_of(SECOND))


def test_a_new_finding_repeats_nothing() -> None:
    more = SECOND + "- the README is wrong\n"
    assert not repeats(findings_of(FIRST), findings_of(more))


def test_fewer_findings_are_still_nothing_new() -> None:
    assert repeats(findings_of(FIRST), findings_of(FIRST)[:1])


def test_no_findings_repeat_nothing() -> None:
    assert not repeats(findings_of(FIRST), ())
    assert not repeats((), findings_of(FIRST))
    assert not repeats((), ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("- src/a.py:12 leaks", "- src/a.py:99 leaks"),
        ("- `parse` on line 4 leaks", "- PARSE on line 5  leaks"),
        ("- L12-L14 leaks", "- L3 leaks"),
        ("- see plan_review_dark_v1.md: it leaks", "- see plan_review_dark_v2.md: it leaks"),
        ("- it leaks (round 1)", "- it leaks (round 2)."),
        ("- it leaks", "- **It still leaks!**"),
        ("1. it leaks", "7) it leaks"),
        ("- since commit 4f2a9c1 it leaks", "- since commit 9b8c7d6e5f it leaks"),
        ("- it\n  leaks", "- it leaks"),
        ("1 failed, 3 passed in 0.45s", "1 failed, 3 passed in 12.01s"),
        ("<Lock object at 0x7f3a91c0> leaks", "<Lock object at 0x7f3a91d8> leaks"),
    ],
)
def test_a_fingerprint_does_not_see(one: str, other: str) -> None:
    assert repeats(findings_of(one), findings_of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("- expected 3, got 4", "- expected 3, got 5"),
        ("- a.py leaks", "- b.py leaks"),
        ("- x < 3", "- x > 3"),
        ("- use C", "- use C++"),
    ],
)
def test_a_fingerprint_sees(one: str, other: str) -> None:
    assert not repeats(findings_of(one), findings_of(other))


def test_heading_below_findings_is_a_finding_with_the_text_under_it() -> None:
    review = "## Findings\n### 1. No lock\nTwo writers meet.\n\nThey race.\n### High\n- no test\n"
    assert texts(review) == ["1. No lock\nTwo writers meet.\nThey race.", "no test"]


@pytest.mark.parametrize(
    "review",
    [
        "## Findings\nNone.\n",
        "## Issues\n- No issues found\n",
        "## Findings\n\nNo blocking issues.\n",
        "",
        "\n\n",
    ],
)
def test_none_is_no_finding(review: str) -> None:
    assert findings_of(review) == ()


def test_what_was_resolved_is_no_finding() -> None:
    review = "## Resolved findings\n- the lock\n\n## Open issues\n- the test\n"
    assert texts(review) == ["the test"]


def test_without_such_a_heading_the_list_counts_and_without_a_list_the_sentences() -> None:
    assert texts("Please look:\n\n* one thing\n* another\n") == ["one thing", "another"]
    assert texts("The lock leaks. The test is missing!") == [
        "The lock leaks.",
        "The test is missing!",
    ]
    assert texts("cause unclear\nsteps missing") == ["cause unclear", "steps missing"]


def test_findings_are_bounded() -> None:
    many = findings_of("".join(f"- thing {number} of a{number}\n" for number in range(5_000)))
    assert len(many) == MAX_FINDINGS
    assert len(findings_of("- " + "x" * 1_000_000)[0].text) <= 2_000


@given(st.text())
def test_any_review_is_read_and_repeats_itself(review: str) -> None:
    found = findings_of(review)
    assert repeats(found, found) == bool(found)
    assert all(item.text for item in found)


@pytest.mark.parametrize(
    "piece", ["- [ ] a\n", "line 1, 2, ", "@@ ", "abcdef1 ", "## Findings\n", "v1 ", "> ", "1. "]
)
@pytest.mark.parametrize("size", [50_000, in_soak(1_000_000)])
def test_a_hostile_review_is_read(piece: str, size: int) -> None:
    def read(size: int) -> None:
        findings = findings_of("## Findings\n" + piece * (size // len(piece)))
        assert len(findings) <= MAX_FINDINGS

    assert_linear_cost(read, size)
