"""A line quoted without its indentation, and several lines in its place."""

from __future__ import annotations

import pytest

from podium.tools.edits import EditRefused, RefusalReason, TextEdit, apply_edits

PYTHON = "class A:\n    def f(self):\n        x = 1\n        return x\n"


def edited(text: str, find: str, replace: str) -> str:
    return apply_edits(text, [TextEdit(find, replace)]).text


@pytest.mark.parametrize(
    ("replace", "lines"),
    [
        ("x = 1\ny = 2", ["        x = 1", "        y = 2"]),
        ("x = 1\n\n\ty = 2", ["        x = 1", "", "\ty = 2"]),
        ("x = 1\n        y = 2", ["        x = 1", "        y = 2"]),
        ("if a:\n    x = 1", ["        if a:", "            x = 1"]),
        ("if a:\n            x = 1", ["        if a:", "            x = 1"]),
        (
            "if a:\n    x = 1\nelse:\n    x = 2",
            ["        if a:", "            x = 1", "        else:", "            x = 2"],
        ),
        ("# why\nx = 1", ["        # why", "        x = 1"]),
        ("x = f(\n    1,\n)", ["        x = f(", "            1,", "        )"]),
    ],
)
def test_later_lines_are_indented_like_the_first_or_stay(replace: str, lines: list[str]) -> None:
    after = edited(PYTHON, "x = 1", replace)

    assert after == PYTHON.replace("        x = 1", "\n".join(lines))


def test_text_after_the_end_of_a_block_keeps_its_indentation() -> None:
    method = edited(PYTHON, "return x", "return x\n\n    def g(self):\n        return 2")
    function = edited(PYTHON, "return x", "return x\n\n\ndef g():\n    return 2")

    assert "\n    def g(self):\n        return 2\n" in method
    assert function.endswith("        return x\n\n\ndef g():\n    return 2\n")


@pytest.mark.parametrize(
    ("text", "find", "replace"),
    [
        ("f() {\n    foo();\n", "foo();", "foo();\n}"),
        (PYTHON, "x = 1", "x = 1\n\n\ndef g():\n    return 2"),
        (PYTHON, "x = 1", "x = 1\nclass B:\n    pass"),
        ("\tx = 1\n", "x = 1", "if a:\n    x = 1"),
        (PYTHON, "x = 1", "if a:\nx = 1"),
    ],
)
def test_where_indentation_is_doubtful_nothing_is_changed(
    text: str, find: str, replace: str
) -> None:
    with pytest.raises(EditRefused) as caught:
        edited(text, find, replace)

    assert caught.value.reason is RefusalReason.DOUBTFUL
    assert "quote the whole line with its indentation" in caught.value.message
    assert caught.value.candidates[0].text.strip() == find


def test_parts_of_lines_and_whole_lines_are_replaced_as_they_are() -> None:
    assert edited("    a = b\n", "= b", "= (\nb)") == "    a = (\nb)\n"
    assert edited("    a\n", "    a", "    a\nb") == "    a\nb\n"
    assert edited("a\n", "a", "a\nb") == "a\nb\n"
