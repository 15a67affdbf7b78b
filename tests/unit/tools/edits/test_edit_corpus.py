"""Every case of the corpus: the right text comes out, or nothing is changed."""

from __future__ import annotations

from collections import Counter

import pytest

from podium.tools.edits import EditRefused, TextEdit, apply_edits, decoded
from tests.edit_cases import EditCase, edit_cases

CASES = edit_cases()
SHAPES = sorted({case.shape for case in CASES})


def came_out(case: EditCase) -> bytes | None:
    edits = [TextEdit(edit.find, edit.replace, edit.at_line) for edit in case.edits]
    try:
        coded = decoded(case.before)
        return coded.encoded(apply_edits(coded.text, edits).text)
    except EditRefused:
        return None


def test_there_are_cases_of_every_shape_that_goes_wrong_in_the_wild() -> None:
    assert len(CASES) >= 200
    assert len(SHAPES) >= 20


@pytest.mark.parametrize("shape", SHAPES)
def test_no_edit_is_ever_made_wrongly(shape: str) -> None:
    made = [(case, came_out(case)) for case in CASES if case.shape == shape]
    assert not [case.name for case, after in made if after is not None and after != case.after]


def test_nearly_every_edit_that_a_person_would_make_is_made() -> None:
    counted = Counter(came_out(case) == case.after for case in CASES)
    assert counted[False] / len(CASES) < 0.02
