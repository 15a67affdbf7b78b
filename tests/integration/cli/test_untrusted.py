"""Text of agents cannot do anything to a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.render.text import coloured_text, safe_line, safe_text
from tests.integration.cli.command_runner import CommandRunner

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


def test_a_task_with_escapes_and_markup_is_printed_plainly(cli: CommandRunner) -> None:
    cli.add_run(task="\x1b[2J[bold red]hi[/bold red]\nthere")
    out = cli.run("runs").out
    assert "\x1b" not in out
    assert "[bold red]hi[/bold red] there" in out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m\t10%\r20%\n", "\x1b[1;31mred\x1b[0m\t10%\r20%\n"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("\x1b]0;title\x07text\x1b[2Jgone", "textgone"),
        ("\x1b[\x1b[0K31mred", "31mred"),
        ("\u202eevil\u202c\x9b2J", "evil"),
        ("\x1b[>4;1mkeys\x1b[6n", "keys"),
    ],
)
def test_a_programs_colours_stay_and_nothing_else_steers(text: str, shown: str) -> None:
    assert coloured_text(text) == shown


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b\x9b[]0;mP\\\x07")))
def test_only_whole_colours_are_left_of_escapes(text: str) -> None:
    left = re.sub(r"\x1b\[[0-9;:]*m", "", coloured_text(text))
    assert not (CONTROLS - {0x0D}) & {ord(character) for character in left}
