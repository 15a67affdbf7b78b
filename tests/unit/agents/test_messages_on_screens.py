"""Messages as terminals show them: whatever a screen can give exactly is read exactly."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from podium.agents.contract import read_messages
from podium.agents.contract.reply_text import unwrapped
from podium.testing.fake_tuis.composer import cut, width_of, wrap_lines

ID = "task_7f3k-9q.x2"
BODY = """1. Read src/app.py and list every call of open(); the ones that pass a literal size go behind settings.get("size", 30).
2. Code:
    def again(work, times=3):
        for each in range(times):
            try:
                return work()
            except OSError as error:  # ]] and [[ stay as they are

                last = error
        raise last
3. One long word: digest=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
4. Other scripts: é漢字🙂 done."""
COLUMNS = 80
FOOT = ["⠋ Thinking… (3s · esc to interrupt)", "╭" + "─" * 40 + "╮", "│ > " + " " * 37 + "│"]


def block(id_: str = ID, body: str = BODY, to: str = "EXECUTER", more: str = "") -> str:
    header = f'[[POLI:MSG {{"to":"{to}","type":"plan","id":"{id_}"{more}}}]]'
    return f"{header}\n<PLAN>\n{body}\n</PLAN>\n[[/POLI:MSG]]"


def bulleted(text: str, columns: int = COLUMNS) -> str:
    """Broken between words, behind a bullet and an indent."""
    rows = [row for line in text.split("\n") for row in wrap_lines(line, columns - 2)]
    return "\n".join(["⏺ " + rows[0], *("  " + row for row in rows[1:])])


def boxed(text: str, columns: int = COLUMNS) -> str:
    rows = [row for line in text.split("\n") for row in wrap_lines(line, columns - 4)]
    inner = [f"│ {row}{' ' * (columns - 4 - width_of(row))} │" for row in rows]
    return "\n".join(["╭" + "─" * (columns - 2) + "╮", *inner, "╰" + "─" * (columns - 2) + "╯"])


def chopped(text: str, columns: int = COLUMNS) -> str:
    """Broken wherever a row is full; a screen does not show the blanks at its end."""
    rows = [row for line in text.split("\n") for row in cut(line, columns)]
    return "\n".join(row.rstrip() for row in rows)


def as_it_is(text: str, columns: int = COLUMNS) -> str:
    """Broken by tmux alone, which puts it together again."""
    del columns
    return text


def of_turn(screen: str, columns: int = COLUMNS) -> list[str]:
    """Bodies of the messages with the turn's id."""
    messages = read_messages(screen, columns=columns)
    return [message.body for message in messages.messages if message.id == ID]


Shows = Callable[[str, int], str]
WAYS: list[Shows] = [as_it_is, bulleted, boxed, chopped]
every_way = pytest.mark.parametrize("shows", WAYS, ids=lambda way: way.__name__)


@every_way
@pytest.mark.parametrize("columns", [60, 80, 113, 1000])
def test_a_block_is_read_exactly_however_a_program_breaks_its_lines(
    shows: Shows, columns: int
) -> None:
    assert of_turn(shows(block(), columns), columns) == [BODY]


@every_way
def test_a_block_longer_than_any_screen_is_read_from_the_history(shows: Shows) -> None:
    body = "\n".join(f"step {number}" for number in range(500))

    assert of_turn(shows(block(body=body), COLUMNS)) == [body]


def test_a_program_that_breaks_lines_before_the_pane_does_is_seen_by_its_header() -> None:
    long_id = ID + "x" * 40

    (message,) = read_messages(chopped(block(long_id), 70), columns=200).messages

    assert (message.id, message.body) == (long_id, BODY)


@every_way
def test_text_around_a_block_is_no_part_of_it(shows: Shows) -> None:
    screen = "\n".join(["❯ do it", "", shows(block(), COLUMNS), *FOOT])

    assert of_turn(screen) == [BODY]


@pytest.mark.parametrize("echo", [lambda text: boxed("> " + text), lambda text: "> " + text])
@every_way
def test_the_echo_of_a_prompt_is_no_answer(shows: Shows, echo: Callable[[str], str]) -> None:
    primer = f"When you are done, answer with:\n{block('<id>', '...')}\nUse my id."

    assert of_turn(f"{echo(primer)}\n{shows(block(), COLUMNS)}") == [BODY]


def test_a_forwarded_block_is_not_of_this_turn() -> None:
    answer = block(body="ok", to="PLANNER")

    assert of_turn(f"> {block('task-before')}\n\n{answer}") == ["ok"]
    assert of_turn(f"You received:\n\n{block('task-before')}\n\n{answer}") == ["ok"]


@every_way
def test_a_copy_that_was_cut_off_is_not_glued_to_the_whole_one(shows: Shows) -> None:
    half = "\n".join(shows(block(), 120).split("\n")[:8])

    assert of_turn(f"{half}\n{shows(block(), COLUMNS)}\n") == [BODY]


@every_way
def test_a_block_that_is_painted_again_is_the_same_twice(shows: Shows) -> None:
    painted = shows(block(), COLUMNS)

    assert of_turn(f"{painted}\n{painted}") == [BODY, BODY]


@every_way
def test_brackets_in_metadata_do_not_end_it(shows: Shows) -> None:
    more = r',"note":"x}]] [[y]] {\"a\":[[1]]}"'

    assert of_turn(shows(block(more=more), COLUMNS)) == [BODY]


@every_way
def test_a_closing_tag_in_a_sentence_does_not_end_a_block(shows: Shows) -> None:
    body = "End every block with [[/POLI:MSG]] on its own line.\nstep 2"

    assert of_turn(shows(block(body=body), COLUMNS)) == [body]


def test_colours_are_taken_off() -> None:
    coloured = re.sub(r"(\[\[|POLI|MSG|\]\]|<PLAN>)", "\x1b[36m\\1\x1b[0m", block())

    assert of_turn(coloured) == [BODY]


def test_section_tags_that_a_program_took_for_markup_are_not_missed() -> None:
    eaten = block().replace("<PLAN>\n", "").replace("\n</PLAN>", "")

    assert of_turn(bulleted(eaten)) == [BODY]


@every_way
def test_a_section_tag_is_not_joined_to_a_word_longer_than_a_row(shows: Shows) -> None:
    assert of_turn(shows(block(body="x" * 100 + "\nend"), COLUMNS)) == ["x" * 100 + "\nend"]


@every_way
def test_two_blocks_are_two(shows: Shows) -> None:
    screen = shows(f"{block('one')}\nand\n{block('two', 'second')}", COLUMNS)

    found = [
        (message.id, message.body) for message in read_messages(screen, columns=COLUMNS).messages
    ]

    assert found == [("one", BODY), ("two", "second")]


def test_lines_that_are_long_and_whole_stay_apart_where_the_program_breaks_none() -> None:
    lines = ["x" * 75, "several words", "y" * 200]

    assert unwrapped(lines, 80) == lines
    assert unwrapped(lines[:2], 80) == [" ".join(lines[:2])], "cannot be told from a broken line"


@pytest.mark.parametrize("following", ["- an item", "12. next", "# Title", "    code", "```", ""])
def test_what_begins_like_an_item_or_code_is_a_line_of_its_own(following: str) -> None:
    assert unwrapped(["x" * 78, following], 80) == ["x" * 78, following]
