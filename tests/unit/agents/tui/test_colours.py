"""Content of a pane, with its colours and without anything that could do more than be shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.agents.tui.screen import separate_lines

_HARMLESS = re.compile(r"(?:\x1b\[[0-9;:]*m|[^\x00-\x1f\x7f-\x9f])*")


def test_colour_that_tmux_carries_over_to_the_next_line_is_repeated() -> None:
    one, other = separate_lines(["\x1b[1m\x1b[31mred", "still red\x1b[39m, bold alone"])
    assert one.endswith("red\x1b[0m")
    assert other == "\x1b[1;31mstill red\x1b[0m\x1b[1;39m, bold alone\x1b[0m"


def test_a_later_colour_takes_the_place_of_an_earlier_one() -> None:
    many = "".join(f"\x1b[38;5;{n}mx" for n in range(255))
    _, after = separate_lines([many, "y"])
    assert after == "\x1b[38;5;254my\x1b[0m"


def test_a_reset_ends_all_colours() -> None:
    assert separate_lines(["\x1b[1;4;48;2;1;2;3mx\x1b[0m", "y"])[1] == "y\x1b[0m"


def test_line_drawing_characters_become_the_lines_they_stand_for() -> None:
    assert separate_lines(["\x0elqk\x0f lqk"]) == ("┌─┐ lqk\x1b[0m",)


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b]52;c;aGVsbG8=\x07",
        "\x1b]0;a title\x1b\\",
        "\x1b]8;;javascript:alert(1)\x1b\\",
        "\x1b[6n",
        "\x1b[2J",
        "\x1bPq#0\x1b\\",
        "\x1bc",
        "\x9b31m",
        "\x1b[?1049h",
        "\x1b_x\x1b\\",
    ],
    ids=repr,
)
def test_what_would_act_on_a_terminal_is_taken_out(hostile: str) -> None:
    (line,) = separate_lines([f"a{hostile}b"])
    assert _HARMLESS.fullmatch(line)
    assert line.startswith("a")
    assert "b" in line


@given(st.lists(st.text(alphabet=st.sampled_from("\x1b[]0;1:9m\x07\\\x9b\x0e\x0fPc?h<ä漢\n"))))
def test_whatever_a_program_draws_only_colours_and_characters_are_left(lines: list[str]) -> None:
    shown = separate_lines(lines)
    assert len(shown) == len(lines)
    for line in shown:
        assert _HARMLESS.fullmatch(line)
