"""Message of a refused edit: the reason, the nearest lines, what is different there."""

from __future__ import annotations

import pytest

from podium.tools.edits import EditRefused, RefusalReason, TextEdit, apply_edits

CODE = """def first(value):
    total = value + 1
    return total


def second(value):
    total = value + 2
    return total
"""


def refusal(text: str, *edits: TextEdit) -> EditRefused:
    with pytest.raises(EditRefused) as caught:
        apply_edits(text, edits)
    return caught.value


def test_missing_text_is_reported_with_the_nearest_line_and_the_difference() -> None:
    refusal_message = refusal(CODE, TextEdit("    total = value + 3\n    return total", "x"))
    assert refusal_message.reason is RefusalReason.MISSING
    assert [candidate.line for candidate in refusal_message.candidates[:2]] == [2, 7]
    assert refusal_message.candidates[0].differs == "at column 21 it has '1', `find` has '3'"


def test_character_of_another_script_is_named() -> None:
    refusal_message = refusal("payment()\n", TextEdit("p\u0430yment()", "x"))
    (candidate,) = refusal_message.candidates
    assert candidate.line == 1
    assert "U+0430 CYRILLIC SMALL LETTER A" in candidate.differs


def test_a_character_that_does_not_show_is_named() -> None:
    refusal_message = refusal("total\u200bvalue = 1\n", TextEdit("totalvalue = 1", "x"))
    assert "U+200B ZERO WIDTH SPACE" in refusal_message.candidates[0].differs


def test_ambiguous_text_is_reported_with_all_its_lines() -> None:
    refusal_message = refusal(CODE, TextEdit("    return total", "x"))
    assert refusal_message.reason is RefusalReason.AMBIGUOUS
    assert [candidate.line for candidate in refusal_message.candidates] == [3, 8]
    assert "at_line" in refusal_message.message


def test_edit_that_seems_done_is_reported_as_such() -> None:
    refusal_message = refusal(CODE, TextEdit("total = value + 9", "total = value + 2"))
    assert "seems to be done" in refusal_message.message
    assert refusal_message.candidates[0].line == 7


def test_the_edit_that_is_refused_is_named_by_its_number() -> None:
    assert refusal(CODE, TextEdit("def first", "def one"), TextEdit("nowhere", "x")).number == 2
    refusal_message = refusal(CODE, TextEdit("value + 1", "x"), TextEdit("+ 1\n", "y\n"))
    assert (refusal_message.reason, refusal_message.number) == (RefusalReason.OVERLAP, 2)


def test_edits_that_leave_the_text_as_it_was_are_refused() -> None:
    refusal_message = refusal("one two\n", TextEdit("one ", "one"), TextEdit("two", " two"))
    assert refusal_message.reason is RefusalReason.NOTHING
    assert refusal("a\n", TextEdit("a", "a")).reason is RefusalReason.NOTHING


def test_a_placeholder_for_lines_that_nobody_left_out_is_refused() -> None:
    lazy = "def first(value):\n    # ... rest of the function unchanged ..."
    refusal_message = refusal(CODE, TextEdit(CODE[: CODE.index("\n\n\n")], lazy))
    assert refusal_message.reason is RefusalReason.DOUBTFUL


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("line", "count"), [("same line", 20_000), ("}", 60_000), ("a" * 999_000, 1)]
)
def test_floods_of_equal_lines_come_to_an_end(line: str, count: int) -> None:
    text = f"{line}\n" * count
    refusal_message = refusal(text, TextEdit(f" {line}\n" * (count // 2) + "other", "x"))
    assert refusal_message.reason is RefusalReason.MISSING
