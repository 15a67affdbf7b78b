"""Words on their way to a terminal hold nothing that it would obey."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.agents.tui.panes import MAX_LINE_BYTES, fit_for_terminal, fits, referring_to
from podium.core.errors import BadInput


@given(st.text())
def test_no_control_character_but_newline_and_tab_gets_through(text: str) -> None:
    try:
        fit = fit_for_terminal(text)
    except BadInput:
        return
    assert not [character for character in fit if ord(character) < 32 and character not in "\n\t"]
    assert not [character for character in fit if 0x7F <= ord(character) < 0xA0]
    assert fit_for_terminal(fit) == fit


def test_plain_words_stay_as_they_are() -> None:
    text = "-leading dash; `code` $HOME #{pane} \\ \n\ttabbed ünïcödé 漢字 🎭\n\nC-c\nEscape;"
    assert fit_for_terminal(text) == text


def test_line_ends_of_all_systems_become_one_newline() -> None:
    assert fit_for_terminal("a\r\nb\rc\nd") == "a\nb\nc\nd"


def test_an_escape_that_ends_a_paste_is_taken_out() -> None:
    assert fit_for_terminal("one\x1b[201~\rtwo\x9b201~") == "one\ntwo201~"


@pytest.mark.parametrize("text", ["", " \n\t", "\x1b[31m", "\x00\x07"])
def test_a_message_without_words_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="message is empty"):
        fit_for_terminal(text)


def test_what_is_too_long_for_its_way_is_handed_over_as_a_file() -> None:
    long_line = "x" * (MAX_LINE_BYTES + 1)
    assert fits("a\nb", "paste", 3)
    assert not fits("a\nbc", "paste", 3)
    assert not fits("a\nb", "reference", 100)
    assert fits("ab", "reference", 100)
    assert fits("a\nb", "lines", 1)
    assert not fits(f"a\n{long_line}", "lines", 1)


def test_a_file_that_is_referred_to_is_private_and_holds_the_words(tmp_path: Path) -> None:
    line = referring_to(tmp_path / "messages", "0-1.txt", "ä\nb")
    file = tmp_path / "messages" / "0-1.txt"
    assert str(file) in line
    assert "\n" not in line
    assert file.read_text() == "ä\nb"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
