"""A message arrives once and whole, and is seen to."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from podium.agents.tui import Program, look
from podium.agents.tui.control import (
    DeliveryInDoubt,
    KeyboardElsewhere,
    NotListening,
    PaneGone,
    ProgramEnded,
    TmuxRefused,
)
from podium.agents.tui.keyboard import Keyboard
from podium.agents.tui.ledger import Ledger
from podium.agents.tui.panes import loading, pasting
from podium.core.errors import BadInput
from podium.platform.system_clock import SystemClock
from podium.testing import retry_until
from tests.integration.agents.tui.tmux_harness import QUICK, Harness, client_of, is_gone

HARD = (
    "-x; ends in a semicolon;\nC-c\nEscape\n\tEnter \\\n`$(id)` #{pid} ünïcödé 漢字 🎭;\n\nlast\\"
)
"""Lines that `send-keys` would lose, or take for keys."""


async def test_a_message_arrives_byte_for_byte(harness: Harness) -> None:
    injector = harness.injector(await harness.open("composer"))
    delivered = await injector.deliver(1, HARD)
    assert harness.taken() == [HARD]
    assert (delivered.before, delivered.as_file) == (False, False)
    assert delivered.enters >= 1


async def test_a_line_of_twenty_thousand_and_a_message_of_sixty_four_thousand_characters_arrive(
    harness: Harness,
) -> None:
    injector = harness.injector(await harness.open("composer"))
    texts = ["\n".join(["one", "x" * 20_000, "three", "four"]), "\n".join(["line " * 15] * 860)]
    for number, text in enumerate(texts, 1):
        await injector.deliver(number, text)
    assert harness.taken() == texts


async def test_messages_follow_one_another_in_both_panes_at_once(harness: Harness) -> None:
    names = ("planner", "executer")
    injectors = [harness.injector(await harness.open("composer", name)) for name in names]
    texts = [f"message {number}\nof ten" for number in range(1, 11)]
    for number, text in enumerate(texts, 1):
        await asyncio.gather(*(injector.deliver(number, text) for injector in injectors))
    assert harness.taken("planner") == harness.taken("executer") == texts


async def test_the_same_number_again_does_nothing(harness: Harness) -> None:
    injector = harness.injector(await harness.open("composer"))
    await injector.deliver(1, "once")
    assert (await injector.deliver(1, "once")).before
    assert await injector.ledger.next_number() == 2
    await injector.deliver(2, "then")
    assert harness.taken() == ["once", "then"]


async def test_a_number_out_of_turn_is_refused(harness: Harness) -> None:
    injector = harness.injector(await harness.open("composer"))
    with pytest.raises(BadInput, match="cannot follow message 0"):
        await injector.deliver(2, "early")


async def test_words_that_would_end_the_paste_submit_nothing_by_themselves(
    harness: Harness,
) -> None:
    injector = harness.injector(await harness.open("composer"))
    await injector.deliver(1, "one\x1b[201~\r\nrm -rf\r\nthree\r\nfour")
    assert harness.taken() == ["one\nrm -rf\nthree\nfour"]


async def test_an_enter_that_was_swallowed_is_pressed_again_and_nothing_pasted_twice(
    harness: Harness,
) -> None:
    injector = harness.injector(await harness.open("swallowing"))
    assert (await injector.deliver(1, HARD)).enters == 3
    assert (await injector.deliver(2, "next")).enters == 3
    assert harness.taken() == [HARD, "next"]


@pytest.mark.soak
async def test_program_that_never_takes_enter_is_reported_and_can_be_continued_with(
    harness: Harness,
) -> None:
    pane = await harness.open("swallowing")
    hasty = harness.injector(pane, patience=QUICK.model_copy(update={"most_enters": 1}))
    with pytest.raises(NotListening, match="does not react to Enter"):
        await hasty.deliver(1, "patience")
    await harness.injector(pane).deliver(1, "patience")
    assert harness.taken() == ["patience"]


AT_ONCE = QUICK.model_copy(update={"settle_seconds": 0.0})
"""For a program that takes an Enter as soon as it shows a paste."""


@pytest.mark.soak
async def test_where_nothing_has_to_settle_enter_is_counted_and_repeated_all_the_same(
    harness: Harness,
) -> None:
    pane = await harness.open("swallowing")
    hasty = harness.injector(pane, patience=AT_ONCE.model_copy(update={"most_enters": 1}))
    with pytest.raises(NotListening, match="does not react to Enter"):
        await hasty.deliver(1, HARD)
    entry = await hasty.ledger.read()
    assert (entry.pasted, entry.visible, entry.sent, entry.enters) == (1, 1, 0, 1)
    injector = harness.injector(pane, patience=AT_ONCE)
    assert (await injector.deliver(1, HARD)).enters == 3
    assert (await injector.deliver(2, "next")).enters == 3
    assert harness.taken() == [HARD, "next"]


async def test_of_two_who_are_at_the_same_message_one_enter_is_pressed(harness: Harness) -> None:
    """The other's came between the last look and ours."""
    pane = await harness.open("composer")
    injector = harness.injector(pane, patience=AT_ONCE)

    class Late(Ledger):
        async def press_once(self, number: int, enters: int, commands: str) -> None:
            await super().press_once(number, enters, f"send-keys -t {pane} C-m")
            await super().press_once(number, enters, commands)

    injector.ledger = Late(harness.control, pane)
    assert (await injector.deliver(1, "once")).enters == 1
    assert harness.taken() == ["once"]


async def test_without_its_words_in_the_server_nothing_is_put_in_and_nothing_noted(
    harness: Harness,
) -> None:
    pane = await harness.open("composer")
    ledger = harness.injector(pane).ledger
    with pytest.raises(TmuxRefused):
        await ledger.paste_once(1, pasting("nowhere", pane), "mine")
    entry = await ledger.read()
    assert (entry.pasted, entry.owners) == (0, {})


async def test_a_draft_of_a_person_is_neither_sent_nor_overwritten(harness: Harness) -> None:
    pane = await harness.open("composer")
    await harness.shows(pane, ">")
    await harness.panes.press(pane, "d", "r", "a", "f", "t")
    await harness.shows(pane, "> draft")
    hasty = harness.injector(pane, patience=QUICK.model_copy(update={"ready_seconds": 0.05}))
    with pytest.raises(NotListening, match="its input holds other text"):
        await hasty.deliver(1, "message")
    await harness.panes.press(pane, *["BSpace"] * 5)
    await harness.injector(pane).deliver(1, "message")
    assert harness.taken() == ["message"]


async def test_a_composer_that_is_not_there_yet_is_waited_for(harness: Harness) -> None:
    pane = await harness.panes.open(
        Program(
            name="planner",
            argv=("sh", "-c", f"read line; exec {_quoted(harness)}"),
            cwd=harness.root,
        )
    )
    await harness.activity.follow(pane)
    delivering = asyncio.ensure_future(harness.injector(pane).deliver(1, "message"))
    await harness.control.run(f"send-keys -t {pane} Enter")
    await delivering
    assert harness.taken() == ["message"]


async def test_a_paste_that_never_shows_is_in_doubt_and_never_repeated(harness: Harness) -> None:
    pane = await harness.panes.open(
        Program(name="planner", argv=("sh", "-c", "stty -echo raw; printf '\\033[?2004h> '; exec cat >got"), cwd=harness.root)
    )  # fmt: skip
    await harness.activity.follow(pane)
    hasty = harness.injector(pane, patience=QUICK.model_copy(update={"paint_seconds": 0.1}))
    for _ in range(2):
        with pytest.raises(DeliveryInDoubt, match="did not appear"):
            await hasty.deliver(1, "message")
    got = harness.root / "got"
    await retry_until(lambda: got.read_bytes() == b"\x1b[200~message\x1b[201~")
    await hasty.ledger.reopen(1)
    with pytest.raises(DeliveryInDoubt):
        await hasty.deliver(1, "message")
    await retry_until(lambda: got.read_bytes() == b"\x1b[200~message\x1b[201~" * 2)


async def test_words_that_went_before_enter_was_pressed_are_in_doubt(harness: Harness) -> None:
    """A supervisor was killed when it had seen them, and a person removed them."""
    pane = await harness.open("composer")
    injector = harness.injector(pane)
    await harness.shows(pane, ">")
    await harness.control.run(loading("first", "abc"))
    await injector.ledger.paste_once(1, pasting("first", pane))
    await harness.shows(pane, "> abc")
    await injector.ledger.note_visible(1)
    await harness.panes.press(pane, *["BSpace"] * 3)
    await retry_until(lambda: _is_empty(harness, pane))
    hasty = harness.injector(pane, patience=QUICK.model_copy(update={"paint_seconds": 0.1}))
    with pytest.raises(DeliveryInDoubt, match="before Enter was pressed"):
        await hasty.deliver(1, "abc")
    await injector.ledger.reopen(1)
    await injector.deliver(1, "abc")
    assert harness.taken() == ["abc"]


async def _is_empty(harness: Harness, pane: str) -> bool:
    return "abc" not in (await look(harness.control, pane)).text


async def test_what_was_sent_cannot_be_opened_again(harness: Harness) -> None:
    injector = harness.injector(await harness.open("composer"))
    await injector.deliver(1, "sent")
    with pytest.raises(BadInput, match="was already sent"):
        await injector.ledger.reopen(1)


async def test_a_program_without_bracketed_paste_gets_one_line_that_names_a_private_file(
    harness: Harness,
) -> None:
    injector = harness.injector(await harness.open("unbracketed"), "reference")
    delivered = await injector.deliver(1, HARD)
    (line,) = harness.taken()
    assert delivered.as_file
    assert Path(line.split(" in the file ")[1].split(" - ")[0]).read_text() == HARD
    await injector.deliver(2, "one line goes as it is")
    assert harness.taken()[1:] == ["one line goes as it is"]


async def test_a_huge_message_goes_as_a_file(harness: Harness) -> None:
    injector = harness.injector(await harness.open("composer"))
    huge = "all work and no play\n" * 10_000
    assert (await injector.deliver(1, huge)).as_file
    (line,) = harness.taken()
    assert Path(line.split(" in the file ")[1].split(" - ")[0]).read_text() == huge


async def test_words_with_a_sign_that_the_program_spoils_go_as_a_file(harness: Harness) -> None:
    patience = QUICK.model_copy(update={"spoilt": "\t"})
    injector = harness.injector(await harness.open("composer"), patience=patience)
    assert (await injector.deliver(1, "all:\n\tmake it")).as_file
    assert not (await injector.deliver(2, "all:\n    make it")).as_file
    line, words = harness.taken()
    assert Path(line.split(" in the file ")[1].split(" - ")[0]).read_text() == "all:\n\tmake it"
    assert words == "all:\n    make it"


async def test_words_of_which_too_little_is_surely_drawn_go_as_a_file(harness: Harness) -> None:
    injector = harness.injector(await harness.open("composer"))
    assert (await injector.deliver(1, "👍")).as_file
    assert (await injector.deliver(2, "👍 yes")).as_file
    assert not (await injector.deliver(3, "👍 yes, go on")).as_file


@pytest.mark.soak  # test_unseen_pastes.py has what comes of it
async def test_what_a_person_does_with_words_that_stand_in_the_input_is_no_sending(
    harness: Harness,
) -> None:
    pane = await harness.open("composer")
    injector = harness.injector(pane, patience=QUICK.model_copy(update={"paint_seconds": 3.0}))
    keyboard = Keyboard(harness.control, pane, SystemClock())
    assert await injector.composer.until(lambda it: it == "empty", "hello", 30.0) == "empty"
    await harness.control.run(loading("left", "hello"))
    await injector.ledger.paste_once(1, pasting("left", pane), "me")
    assert await injector.composer.until(lambda it: it == "ours", "hello", 30.0) == "ours"
    await injector.ledger.note_visible(1)
    await keyboard.take("ann", 600.0)  # after its settling: whoever pasted is dead
    with pytest.raises(KeyboardElsewhere):
        await injector.deliver(1, "hello", "me")
    await keyboard.press("ann", *["BSpace"] * len("hello"))
    # Not before it shows: an Enter would follow keys that the program has yet to read.
    assert await injector.composer.until(lambda it: it == "empty", "hello", 30.0) == "empty"
    await injector.ledger.note_sent(1)
    assert (await injector.ledger.read()).sent == 0
    await keyboard.give("ann")
    with pytest.raises(DeliveryInDoubt, match="before Enter was pressed"):
        await injector.deliver(1, "hello", "me")
    assert harness.taken() == []


async def test_plain_line_program_gets_every_line_with_enter(harness: Harness) -> None:
    injector = harness.injector(await harness.open("echo"), "lines")
    await injector.deliver(1, "one\ntwo;\n\nC-c\n")
    await injector.deliver(2, "-three")
    assert (await injector.deliver(1, "one\ntwo;\n\nC-c\n")).before
    await retry_until(lambda: harness.taken() == ["one", "two;", "", "C-c", "-three"])


async def test_a_line_that_a_terminal_would_cut_goes_as_a_file(harness: Harness) -> None:
    injector = harness.injector(await harness.open("echo"), "lines")
    assert (await injector.deliver(1, "x" * 6000)).as_file
    (line,) = await retry_until(harness.taken)
    assert Path(line.split(" in the file ")[1].split(" - ")[0]).read_text() == "x" * 6000


async def test_a_person_who_scrolls_back_does_not_hold_up_a_message(harness: Harness) -> None:
    pane = await harness.open("composer")
    await harness.shows(pane, ">")
    await harness.control.run(f"copy-mode -t {pane}")
    await harness.injector(pane).deliver(1, "message")
    assert harness.taken() == ["message"]


async def test_program_that_ends_instead_of_taking_a_message_is_reported_with_its_last_words(
    harness: Harness,
) -> None:
    pane = await harness.open("crashing")
    with pytest.raises(ProgramEnded, match="in pane %0 ended") as error:
        await harness.injector(pane).deliver(1, "message")
    assert "fatal: out of memory" in error.value.last_output


async def test_pane_closed_meanwhile_is_reported(harness: Harness) -> None:
    pane = await harness.open("composer")
    await harness.open("composer", "executer")
    await harness.control.run(f"kill-pane -t {pane}")
    with pytest.raises(PaneGone):
        await harness.injector(pane).deliver(1, "message")


@pytest.mark.soak
async def test_a_connection_that_is_lost_meanwhile_costs_nothing(harness: Harness) -> None:
    injector = harness.injector(await harness.open("swallowing"))
    server = (await harness.server.identity()).pid
    delivering = asyncio.ensure_future(injector.deliver(1, HARD))
    client = await client_of(harness)
    os.kill(server, signal.SIGSTOP)  # so that it answers none of what is being asked
    os.kill(client, signal.SIGKILL)
    await retry_until(lambda: is_gone(client))
    os.kill(server, signal.SIGCONT)
    await delivering
    assert harness.taken() == [HARD]


async def test_a_late_command_of_a_dead_supervisor_pastes_nothing_twice(harness: Harness) -> None:
    pane = await harness.open("composer")
    injector = harness.injector(pane)
    await injector.deliver(1, "once")
    await harness.control.run(loading("late", "once"))
    await injector.ledger.paste_once(1, pasting("late", pane))
    await injector.ledger.press_once(1, 0, f"send-keys -t {pane} C-m")
    await injector.deliver(2, "then")
    assert harness.taken() == ["once", "then"]


async def test_the_ledger_is_the_panes_own(harness: Harness) -> None:
    first = harness.injector(await harness.open("composer"))
    second = harness.injector(await harness.open("composer", "executer"))
    await first.deliver(1, "one")
    assert (await first.ledger.next_number(), await second.ledger.next_number()) == (2, 1)


async def test_no_buffer_with_a_message_is_left_in_the_server(harness: Harness) -> None:
    injector = harness.injector(await harness.open("composer"))
    await injector.deliver(1, "private words")
    assert await harness.control.ask("list-buffers") == []


def _quoted(harness: Harness) -> str:
    return " ".join(harness.program("composer").argv)
