"""A program that nobody knows is read by patterns, which its options may set right."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.agents.kit import AgentOptions
from podium.agents.tui import Composer, GenericTui, Screen
from podium.agents.tui.adapting import Place, Status
from podium.domain.errors import BadInput
from podium.domain.model import Json

REFERENCE = (
    "Your message is in the file /tmp/podium/pair/planner/messages/0-12-0123456789abcdef.txt - "
    "read all of it, then do what it says."
)


def generic(**options: Json) -> GenericTui:
    return GenericTui(AgentOptions(name="mine", command=("mine",), options=options))


def a_screen(*lines: str, cursor: tuple[int, int] = (0, 0), columns: int = 80) -> Screen:
    return Screen(
        lines=lines,
        columns=columns,
        rows=24,
        cursor=cursor,
        alternate=False,
        in_mode=False,
        dead=False,
        exit_code=None,
        title="",
    )


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ((), "starting"),
        (("", "  "), "starting"),
        (("Welcome", "> ", "? for help"), "ready"),
        (("╭────╮", "│ ❯  │", "╰────╯"), "ready"),
        (("Working (3s • esc to interrupt)", "> "), "busy"),
        (("Working (3s • esc to interrupt)", "said", "[[/POLI:MSG]]", "> "), "ready"),
        (("Do you trust this folder?", "1. Yes", "2. No"), "asking"),
        (("You asked: do you want tea? (y/n)", "No.", "> "), "ready"),
        (("some output",), "unknown"),
    ],
)
def test_what_it_is_at_is_seen_at_the_bottom_of_its_screen(
    lines: tuple[str, ...], status: Status
) -> None:
    assert generic().status(a_screen(*lines)) == status


def test_what_it_asks_is_told_without_its_frame() -> None:
    screen = a_screen("╭───╮", "│ Delete all? (y/n) │", "╰───╯")
    assert generic().question(screen) == "Delete all? (y/n)"


@pytest.mark.parametrize(
    ("lines", "composer"),
    [
        (("> ",), "empty"),
        (("> a draft",), "other"),
        ((f"> {REFERENCE}",), "ours"),
        (("> Your message is in",), "other"),
        ((f"> {REFERENCE[:78]}", REFERENCE[78:]), "ours"),
        (("╭──╮", f"│ > {REFERENCE[:70]} │", f"│   {REFERENCE[70:]} │", "╰──╯", "footer"), "ours"),
        (("> [Pasted text #1 +12 lines]",), "ours"),
        (("> [Pasted Content 1200 chars]",), "ours"),
        ((f"> {REFERENCE}", "* took it", "> "), "empty"),
        ((f"> {REFERENCE}", "Thinking (esc to interrupt)"), "unseen"),
        ((), "unseen"),
    ],
)
def test_what_stands_in_its_input_is_held_against_the_words(
    lines: tuple[str, ...], composer: Composer
) -> None:
    assert generic().composer(a_screen(*lines), REFERENCE) == composer


def test_short_words_are_known_whole() -> None:
    assert generic().composer(a_screen("> yes"), "yes") == "ours"
    assert generic().composer(a_screen("> yes and"), "yes") == "ours"
    assert generic().composer(a_screen("> ye"), "yes") == "other"


def test_where_no_prompt_is_to_be_seen_the_words_stand_before_the_cursor() -> None:
    eyes = generic(manner="reference")
    assert eyes.composer(a_screen("name: ", cursor=(6, 0)), "x y") == "empty"
    assert eyes.composer(a_screen("name: x y", cursor=(9, 0)), "x y") == "ours"
    assert eyes.composer(a_screen("name: x y", "done", cursor=(0, 2)), "x y") == "empty"
    wrapped = a_screen(f"name: {REFERENCE}", cursor=((6 + len(REFERENCE)) % 80, 1))
    assert eyes.composer(wrapped, REFERENCE) == "ours"


def test_options_say_what_is_not_as_usual() -> None:
    eyes = generic(
        prompt="ask:", placeholder="type here.*", busy="grinding", asking="sure\\?", manner="paste",
        interrupt_keys=["C-g"],
    )  # fmt: skip
    assert eyes.composer(a_screen("ask: type here please"), "words") == "empty"
    assert eyes.status(a_screen("grinding", "ask:")) == "busy"
    assert eyes.status(a_screen("Are you sure?")) == "asking"
    assert (eyes.manner, eyes.interrupt_keys) == ("paste", ("C-g",))


def test_a_program_of_plain_lines_is_interrupted_as_usual_there() -> None:
    assert generic(manner="lines").interrupt_keys == ("C-c",)
    assert generic().interrupt_keys == ("Escape",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colour": "red"}, "'colour'"),
        ({"busy": "("}, "no regular expression"),
        ({"manner": "shout"}, "'manner'"),
    ],
)
def test_options_that_it_does_not_have_are_refused(options: dict[str, Json], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        generic(**options)


def test_without_a_command_it_is_refused() -> None:
    with pytest.raises(BadInput, match="has no `command`"):
        GenericTui(AgentOptions(name="mine"))


def test_it_starts_in_its_private_home(tmp_path: Path) -> None:
    options = AgentOptions(name="mine", command=("mine", "-x"), env={"KEY": "secret://K"})
    place = Place("planner", tmp_path, tmp_path / "h", tmp_path / "t", options, (), tmp_path, True)
    launch = GenericTui(options).launch(place, None)
    assert launch.argv == ("mine", "-x")
    assert launch.env == {
        "HOME": str(tmp_path / "h"),
        "TMPDIR": str(tmp_path / "t"),
        "KEY": "secret://K",
    }
    assert GenericTui(options).written(place, "") is None
