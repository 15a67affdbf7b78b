"""Answers are told apart, whatever a screen shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.agents.tui.control import PaneGone, TmuxRefused, answer_of, answers_of, refuse_errors

MARK = b"1700000000 290 1"
BEGIN, END, ERROR = b"%begin " + MARK, b"%end " + MARK, b"%error " + MARK
AFTER = [b"%window-renamed @0 x", b"%begin 1700000000 291 1"]

hostile_line = st.sampled_from([BEGIN, END, ERROR, *AFTER, b"", b"%exit", b"text"]) | st.binary(
    max_size=20
).filter(lambda line: b"\n" not in line)


@given(st.lists(hostile_line))
def test_a_screen_that_draws_the_end_of_an_answer_is_still_read_whole(shown: list[bytes]) -> None:
    lines = [b"%end 1700000000 289 1", b"%layout-change", BEGIN, *shown, END, *AFTER]
    assert answer_of(lines, "capture-pane") == [line.decode(errors="replace") for line in shown]


def test_error_is_reported_in_the_words_of_tmux_without_the_private_part_of_the_command() -> None:
    lines = [BEGIN, b"bad option", ERROR, *AFTER]
    with pytest.raises(TmuxRefused, match="tmux set-buffer: bad option") as error:
        answer_of(lines, "set-buffer -- s3cret")
    assert "s3cret" not in str(error.value)


def test_vanished_pane_is_reported_as_such() -> None:
    with pytest.raises(PaneGone, match="%7"):
        answer_of([BEGIN, b"can't find pane: %7", ERROR, *AFTER], "capture-pane")


def test_every_command_of_a_list_has_its_own_block_and_the_first_error_counts() -> None:
    block = [
        BEGIN,
        END,
        b"%begin 1 2 1",
        b"no buffer x",
        b"%error 1 2 1",
        b"%begin 1 3 1",
        b"%end 1 3 1",
    ]
    with pytest.raises(TmuxRefused, match="no buffer x"):
        refuse_errors([*block, *AFTER], "if -F")
    refuse_errors([BEGIN, END, *AFTER], "if -F")


@given(st.lists(hostile_line))
def test_of_answers_to_several_commands_the_last_may_be_hostile(shown: list[bytes]) -> None:
    first = [b"%begin 1 2 1", b"facts", b"%end 1 2 1"]
    found = answers_of([*first, BEGIN, *shown, END, *AFTER], ["display", "capture"])
    assert found == [["facts"], [line.decode(errors="replace") for line in shown]]
    with pytest.raises(PaneGone):
        answers_of([BEGIN, b"can't find pane: %1", ERROR, *AFTER], ["display", "capture"])


def test_what_attaching_itself_says_is_no_answer() -> None:
    attached = [b"%begin 1 1 0", b"%end 1 1 0", b"%session-changed $0 main"]
    assert answer_of([*attached, BEGIN, b"mine", END, *AFTER], "display") == ["mine"]
    with pytest.raises(TmuxRefused, match="no answer"):
        answer_of(attached, "display")
