"""A program that nobody knows is read by patterns, which its options may set right."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.agents.contract.reply_text import cells
from podium.agents.deps import AgentOptions
from podium.agents.tui import Composer, GenericTui, Injector, TerminalScreen
from podium.agents.tui.adapter import ProgramContext, Status
from podium.core.errors import BadInput
from podium.core.model import Json
from tests.integration.agents.tui.tmux_harness import QUICK, Harness

REFERENCE = (
    "Your message is in the file /tmp/podium/pair/planner/messages/0-12-0123456789abcdef.txt - "
    "read all of it, then do what it says."
)


CODE = "Run this, then say what it prints:\n\n```python\nprint(2)\n```"
"""Its last line stands in it twice, its first paragraph is short."""


def generic(**options: Json) -> GenericTui:
    return GenericTui(AgentOptions(name="mine", command=("mine",), options=options))


def a_screen(*lines: str, cursor: tuple[int, int] = (0, 0), columns: int = 80) -> TerminalScreen:
    return TerminalScreen(
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


def test_its_question_is_shown_without_its_frame() -> None:
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
def test_text_in_its_input_is_compared_with_the_message(
    lines: tuple[str, ...], composer: Composer
) -> None:
    assert generic().composer(a_screen(*lines), REFERENCE) == composer


def test_short_words_are_known_whole() -> None:
    assert generic().composer(a_screen("> yes"), "yes") == "ours"
    assert generic().composer(a_screen("> yes and"), "yes") == "ours"
    assert generic().composer(a_screen("> ye"), "yes") == "other"


@pytest.mark.parametrize("cursor", [(0, 3), (9, 0)])
def test_words_whose_emoji_are_drawn_in_part_are_ours(cursor: tuple[int, int]) -> None:
    words = "well done \U0001f44d\U0001f3fd, go on"
    shown = a_screen("> well done \U0001f44d, go on", cursor=cursor)
    assert generic().composer(shown, words) == "ours"
    other = a_screen("> well done \U0001f44d, go off", cursor=cursor)
    assert generic().composer(other, words) == "other"


def test_where_no_prompt_is_to_be_seen_the_words_stand_before_the_cursor() -> None:
    eyes = generic(manner="reference")
    assert eyes.composer(a_screen("name: ", cursor=(6, 0)), "x y") == "empty"
    assert eyes.composer(a_screen("name: x y", cursor=(9, 0)), "x y") == "ours"
    assert eyes.composer(a_screen("name: x y", "done", cursor=(0, 2)), "x y") == "empty"
    wrapped = a_screen(f"name: {REFERENCE}", cursor=((6 + len(REFERENCE)) % 80, 1))
    assert eyes.composer(wrapped, REFERENCE) == "ours"


@pytest.mark.parametrize("prompt", ["^> ", "^>", ">$", ">  "])
def test_blanks_behind_an_empty_prompt_are_not_missed(prompt: str) -> None:
    eyes = generic(prompt=prompt)
    assert eyes.status(a_screen("> yes", "yes what?", ">", cursor=(2, 2))) == "ready"
    assert eyes.composer(a_screen("> yes", "yes what?", ">", cursor=(2, 2)), "yes") == "empty"


def test_words_that_end_as_they_begin_are_known_by_where_the_cursor_is() -> None:
    words = "first line\n" * 30 + CODE
    shown = f"> {words}".split("\n")
    for lines in (shown, shown[-20:], ["```", *shown[-20:]]):
        screen = a_screen(*lines, cursor=(3, len(lines) - 1))
        assert generic().composer(screen, words) == "ours", lines


def test_words_with_empty_lines_are_known_wherever_the_cursor_is() -> None:
    framed = [f"│ {line:<40} │" for line in f"> {CODE}".split("\n")]
    screen = a_screen("╭──╮", *framed, "╰──╯", "? for help", cursor=(0, 9))
    assert generic().composer(screen, CODE) == "ours"


@pytest.mark.parametrize(
    "words",
    [
        "Ask me: do you want tea? (y/n)",
        "Say what esc to interrupt means",
        "> quoted\n> and more",
        "| a | b |\n| 漢字 🎭 | ünïcödé |",
        "it ends in an empty line\n",
    ],
)
def test_words_right_before_the_cursor_are_ours_whatever_they_look_like(words: str) -> None:
    lines = f"> {words}".split("\n")
    screen = a_screen(*lines, cursor=(cells(lines[-1]), len(lines) - 1))
    assert generic().composer(screen, words) == "ours"


@pytest.mark.parametrize(
    ("lines", "cursor", "composer"),
    [
        (("> the words",), (0, 1), "unseen"),
        (("> the words", "thinking"), (8, 1), "unseen"),
        (("> the words", "thought", ">"), (2, 2), "empty"),
        (("> the words", "", "────", "? for help"), (2, 1), "unsent"),
        (("> the words", "? for help"), (2, 0), "ours"),
    ],
)
def test_words_that_the_cursor_went_on_from_have_left(
    lines: tuple[str, ...], cursor: tuple[int, int], composer: Composer
) -> None:
    eyes = generic()
    assert eyes.composer(a_screen("> the words", cursor=(11, 0)), "the words") == "ours"
    assert eyes.composer(a_screen(*lines, cursor=cursor), "the words") == composer


@pytest.mark.sample(1)
@pytest.mark.parametrize("prompt", ["^> ", r"> \w"], ids=["right", "never seen empty"])
async def test_a_program_that_thinks_without_a_sign_of_it_gets_one_enter(
    harness: Harness, prompt: str
) -> None:
    pane = await harness.open("repl")
    await harness.shows(pane, ">")
    eyes = generic(manner="paste", prompt=prompt)
    injector = Injector(harness.control, harness.activity, pane, eyes, harness.root / "m", QUICK)
    assert (await injector.deliver(1, CODE)).enters == 1
    await harness.shows(pane, "took")
    assert harness.taken() == [CODE]


@pytest.mark.soak
async def test_messages_that_fill_the_screen_and_end_alike_arrive_once(harness: Harness) -> None:
    pane = await harness.open("repl")
    eyes = generic(manner="paste", prompt="^> ")
    injector = Injector(harness.control, harness.activity, pane, eyes, harness.root / "m", QUICK)
    texts = [CODE, "a line\n" * 40 + CODE, f"> quoted\n{CODE}", CODE, "yes", "yes"]
    for number, text in enumerate(texts, 1):
        await injector.deliver(number, text)
    assert harness.taken() == texts


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
        ({"busy": "("}, "not a valid regular expression"),
        ({"manner": "shout"}, "'manner'"),
    ],
)
def test_options_that_it_does_not_have_are_refused(options: dict[str, Json], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        generic(**options)


def test_without_a_command_it_is_refused() -> None:
    with pytest.raises(BadInput, match="has no program"):
        GenericTui(AgentOptions(name="mine"))


def test_it_starts_in_its_private_home(tmp_path: Path) -> None:
    options = AgentOptions(name="mine", command=("mine", "-x"), env={"KEY": "secret://K"})
    place = ProgramContext(
        "planner", tmp_path, tmp_path / "h", tmp_path / "t", options, (), tmp_path, True
    )
    launch = GenericTui(options).launch(place, None)
    assert launch.argv == ("mine", "-x")
    assert launch.env == {
        "HOME": str(tmp_path / "h"),
        "TMPDIR": str(tmp_path / "t"),
        "KEY": "secret://K",
    }
    assert GenericTui(options).written(place, "") is None
