"""What is said when an edit is refused: the reason, the nearest lines, what is different there."""

from __future__ import annotations

import pytest

from podium.tools.edits import Edit, EditRefused, Reason, apply_edits

CODE = """def first(value):
    total = value + 1
    return total


def second(value):
    total = value + 2
    return total
"""


def refusal(text: str, *edits: Edit) -> EditRefused:
    with pytest.raises(EditRefused) as caught:
        apply_edits(text, edits)
    return caught.value


def test_a_missing_text_is_told_with_the_nearest_line_and_the_difference() -> None:
    told = refusal(CODE, Edit("    total = value + 3\n    return total", "x"))
    assert told.reason is Reason.MISSING
    assert [each.line for each in told.candidates[:2]] == [2, 7]
    assert told.candidates[0].differs == "at column 21 it has '1', `find` has '3'"


def test_a_letter_of_another_script_is_named() -> None:
    told = refusal("payment()\n", Edit("p\u0430yment()", "x"))
    (candidate,) = told.candidates
    assert candidate.line == 1
    assert "U+0430 CYRILLIC SMALL LETTER A" in candidate.differs


def test_a_character_that_does_not_show_is_named() -> None:
    told = refusal("total\u200bvalue = 1\n", Edit("totalvalue = 1", "x"))
    assert "U+200B ZERO WIDTH SPACE" in told.candidates[0].differs


def test_an_ambiguous_text_is_told_with_all_its_lines() -> None:
    told = refusal(CODE, Edit("    return total", "x"))
    assert told.reason is Reason.AMBIGUOUS
    assert [each.line for each in told.candidates] == [3, 8]
    assert "at_line" in told.words


def test_what_is_done_already_is_said_to_be() -> None:
    told = refusal(CODE, Edit("total = value + 9", "total = value + 2"))
    assert "seems done" in told.words
    assert told.candidates[0].line == 7


def test_the_edit_that_is_refused_is_named_by_its_number() -> None:
    assert refusal(CODE, Edit("def first", "def one"), Edit("nowhere", "x")).number == 2
    told = refusal(CODE, Edit("value + 1", "x"), Edit("+ 1\n", "y\n"))
    assert (told.reason, told.number) == (Reason.OVERLAP, 2)


def test_edits_that_leave_the_text_as_it_was_are_refused() -> None:
    told = refusal("one two\n", Edit("one ", "one"), Edit("two", " two"))
    assert told.reason is Reason.NOTHING
    assert refusal("a\n", Edit("a", "a")).reason is Reason.NOTHING


def test_a_placeholder_for_lines_that_nobody_left_out_is_refused() -> None:
    lazy = "def first(value):\n    # ... rest of the function unchanged ..."
    told = refusal(CODE, Edit(CODE[: CODE.index("\n\n\n")], lazy))
    assert told.reason is Reason.DOUBTFUL


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("line", "count"), [("same line", 20_000), ("}", 60_000), ("a" * 999_000, 1)]
)
def test_floods_of_equal_lines_come_to_an_end(line: str, count: int) -> None:
    text = f"{line}\n" * count
    told = refusal(text, Edit(f" {line}\n" * (count // 2) + "other", "x"))
    assert told.reason is Reason.MISSING
