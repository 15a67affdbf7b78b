"""Hunks, put into texts: right, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.tools.edits import EditRefused, Hunk, RefusalReason, apply_hunks, diff_between
from podium.tools.edits.patch import read_patch
from tests.soaking import examples

TWICE = (
    "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"
)
CHANGE = (("        return 1",), ("        return 2",))


def hunks_of(before: str, after: str) -> tuple[Hunk, ...]:
    (file,) = read_patch(diff_between("f", before, after))
    return file.hunks


@pytest.mark.parametrize(
    ("below", "line"), [(("class A:",), 3), (("class B",), 7), (("class B:", "def f(self):"), 7)]
)
def test_a_head_chooses_among_equal_places(below: tuple[str, ...], line: int) -> None:
    edited = apply_hunks(TWICE, [Hunk(*CHANGE, below=below)])

    assert [done.line for done in edited.done] == [line]
    assert edited.text.split("\n")[line - 1] == "        return 2"


@pytest.mark.parametrize("below", [(), ("def f(self):",), ("class C",)])
def test_without_a_mark_that_fits_one_place_alone_it_is_ambiguous(below: tuple[str, ...]) -> None:
    with pytest.raises(EditRefused) as caught:
        apply_hunks(TWICE, [Hunk(*CHANGE, below=below)])

    assert caught.value.reason is RefusalReason.AMBIGUOUS
    assert [candidate.line for candidate in caught.value.candidates] == [3, 7]


def test_a_line_number_chooses_where_the_hunk_before_it_moved_by() -> None:
    text = "new\nnew\nhead\n" + "same\n" * 3 + "end\n"
    hunks = [Hunk(("head",), ("HEAD",), line=1), Hunk(("same",), ("SAME",), line=3)]

    edited = apply_hunks(text, hunks)

    assert [done.line for done in edited.done] == [3, 5]


def test_a_line_number_that_is_stale_chooses_nothing() -> None:
    with pytest.raises(EditRefused, match="3 places"):
        apply_hunks("x\n" + "same\n" * 3, [Hunk(("same",), ("SAME",), line=9)])


def test_a_line_is_not_found_inside_another() -> None:
    with pytest.raises(EditRefused, match="were not found in the file"):
        apply_hunks("max = 1\n", [Hunk(("x = 1",), ("x = 2",))])


def test_only_new_lines_go_to_the_end_of_a_file_or_nowhere() -> None:
    assert apply_hunks("a\n", [Hunk((), ("b",), at_end=True)]).text == "a\nb\n"
    assert apply_hunks("a", [Hunk((), ("b",), at_end=True)]).text == "a\nb"
    assert apply_hunks("", [Hunk((), ("b",))]).text == "b\n"
    with pytest.raises(EditRefused, match="only new lines"):
        apply_hunks("a\n", [Hunk((), ("b",), line=1)])


def test_two_hunks_of_the_same_lines_are_refused() -> None:
    with pytest.raises(EditRefused, match="change the same text"):
        apply_hunks("a\nb\n", [Hunk(("a", "b"), ("a", "c")), Hunk(("b",), ("d",))])


def test_a_refusal_speaks_of_hunks() -> None:
    with pytest.raises(EditRefused) as caught:
        apply_hunks("“a”  b\n", [Hunk(('"a" b',), ('"x" b', "more"))])

    assert "`find`" not in caught.value.message


_LINES = st.lists(st.sampled_from(["a", "b", "  c", "", "-- d", "++ e", "@@ f"]), max_size=12)
_ENDS = st.sampled_from(["", "\n"])


@settings(max_examples=examples(300), deadline=None)
@given(_LINES, _LINES, _ENDS, _ENDS)
def test_a_diff_of_two_texts_makes_the_one_of_the_other_or_is_refused(
    old: list[str], new: list[str], old_end: str, new_end: str
) -> None:
    before = "\n".join(old) + (old_end if old else "")
    after = "\n".join(new) + (new_end if new else "")
    if not before or not after or before == after:
        return
    try:
        found = apply_hunks(before, hunks_of(before, after)).text
    except EditRefused as refused:
        found = (
            after
            if refused.reason in (RefusalReason.AMBIGUOUS, RefusalReason.DOUBTFUL)
            else refused.message
        )

    assert found == after


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=30, unique=True),
    st.sets(st.integers(0, 29), max_size=5),
    st.integers(0, 5),
    st.sampled_from(["\n", "\r\n"]),
)
def test_lines_put_in_above_move_the_hunks_and_change_nothing_else(
    numbers: list[int], changed: set[int], added: int, end: str
) -> None:
    old = [f"line {number}" for number in numbers]
    new = [f"{line} changed" if at in changed else line for at, line in enumerate(old)]
    if old == new:
        return
    hunks = hunks_of("".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new))
    above = [f"above {number}" for number in range(added)]

    edited = apply_hunks(end.join([*above, *old, ""]), hunks)

    assert edited.text == end.join([*above, *new, ""])
