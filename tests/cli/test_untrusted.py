"""Text of agents cannot do anything to a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cli.untrusted import safe_line, safe_text
from tests.cli.desk import Desk

CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {0x09, 0x0A}


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;aGk=\x07after", "after"),
        ("\x9b2Jgone", "gone"),
        ("a\rb", "a\nb"),
        ("a\x08\x08b", "ab"),
        ("\u202eevil\u202c", "evil"),
        ("zero\u200bwidth", "zerowidth"),
        ("half\ud800", "half"),
        ("tab\tline\n", "tab\tline\n"),
        ("\x1bPq secret\x1b\\ok", "ok"),
        ("\x1bcreset", "reset"),
    ],
)
def test_escapes_and_controls_are_taken_out(text: str, safe: str) -> None:
    assert safe_text(text) == safe


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b\x9b[]0;mP\\\x07")))
def test_nothing_that_could_steer_a_terminal_is_left(text: str) -> None:
    assert not CONTROLS & {ord(character) for character in safe_text(text)}
    assert "\n" not in safe_line(text)


def test_a_line_is_cut_to_its_length() -> None:
    assert safe_line("a  b\nc", 4) == "a b…"


def test_a_task_with_escapes_and_markup_is_printed_plainly(desk: Desk) -> None:
    desk.add_run(task="\x1b[2J[bold red]hi[/bold red]\nthere")
    out = desk.run("runs").out
    assert "\x1b" not in out
    assert "[bold red]hi[/bold red] there" in out
