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
from tests.integration.agents.tui.rig import QUICK, House, client_of, is_gone

HARD = (
    "-x; ends in a semicolon;\nC-c\nEscape\n\tEnter \\\n`$(id)` #{pid} ünïcödé 漢字 🎭;\n\nlast\\"
)
"""Lines that `send-keys` would lose, or take for keys."""


async def test_a_message_arrives_byte_for_byte(house: House) -> None:
    injector = house.injector(await house.open("composer"))
    delivered = await injector.deliver(1, HARD)
    assert house.taken() == [HARD]
    assert (delivered.before, delivered.as_file) == (False, False)
    assert delivered.enters >= 1


async def test_a_line_of_twenty_thousand_and_a_message_of_sixty_four_thousand_characters_arrive(
    house: House,
) -> None:
    injector = house.injector(await house.open("composer"))
    texts = ["\n".join(["one", "x" * 20_000, "three", "four"]), "\n".join(["line " * 15] * 860)]
    for number, text in enumerate(texts, 1):
        await injector.deliver(number, text)
    assert house.taken() == texts


async def test_messages_follow_each_other_in_both_panes_at_once(house: House) -> None:
    names = ("planner", "executer")
    injectors = [house.injector(await house.open("composer", name)) for name in names]
    texts = [f"message {number}\nof ten" for number in range(1, 11)]
    for number, text in enumerate(texts, 1):
        await asyncio.gather(*(injector.deliver(number, text) for injector in injectors))
    assert house.taken("planner") == house.taken("executer") == texts


async def test_the_same_number_again_does_nothing(house: House) -> None:
    injector = house.injector(await house.open("composer"))
    await injector.deliver(1, "once")
    assert (await injector.deliver(1, "once")).before
    assert await injector.ledger.next_number() == 2
    await injector.deliver(2, "then")
    assert house.taken() == ["once", "then"]


async def test_a_number_out_of_turn_is_refused(house: House) -> None:
    injector = house.injector(await house.open("composer"))
    with pytest.raises(BadInput, match="cannot follow message 0"):
        await injector.deliver(2, "early")


async def test_words_that_would_end_the_paste_submit_nothing_by_themselves(house: House) -> None:
    injector = house.injector(await house.open("composer"))
    await injector.deliver(1, "one\x1b[201~\r\nrm -rf\r\nthree\r\nfour")
    assert house.taken() == ["one\nrm -rf\nthree\nfour"]


async def test_an_enter_that_was_swallowed_is_pressed_again_and_nothing_pasted_twice(
    house: House,
) -> None:
    injector = house.injector(await house.open("swallowing"))
    assert (await injector.deliver(1, HARD)).enters == 3
    assert (await injector.deliver(2, "next")).enters == 3
    assert house.taken() == [HARD, "next"]


@pytest.mark.soak
async def test_a_program_that_never_takes_enter_is_told_of_and_can_be_gone_on_with(
    house: House,
) -> None:
    pane = await house.open("swallowing")
    hasty = house.injector(pane, patience=QUICK.model_copy(update={"most_enters": 1}))
    with pytest.raises(NotListening, match="does not react to Enter"):
        await hasty.deliver(1, "patience")
    await house.injector(pane).deliver(1, "patience")
    assert house.taken() == ["patience"]


AT_ONCE = QUICK.model_copy(update={"settle_seconds": 0.0})
"""For a program that takes an Enter as soon as it shows a paste."""


@pytest.mark.soak
async def test_where_nothing_has_to_settle_enter_is_counted_and_repeated_all_the_same(
    house: House,
) -> None:
    pane = await house.open("swallowing")
    hasty = house.injector(pane, patience=AT_ONCE.model_copy(update={"most_enters": 1}))
    with pytest.raises(NotListening, match="does not react to Enter"):
        await hasty.deliver(1, HARD)
    entry = await hasty.ledger.read()
    assert (entry.pasted, entry.visible, entry.sent, entry.enters) == (1, 1, 0, 1)
    injector = house.injector(pane, patience=AT_ONCE)
    assert (await injector.deliver(1, HARD)).enters == 3
    assert (await injector.deliver(2, "next")).enters == 3
    assert house.taken() == [HARD, "next"]


async def test_of_two_who_are_at_the_same_message_one_enter_is_pressed(house: House) -> None:
    """The other's came between the last look and ours."""
    pane = await house.open("composer")
    injector = house.injector(pane, patience=AT_ONCE)

    class Late(Ledger):
        async def press_once(self, number: int, enters: int, commands: str) -> None:
            await super().press_once(number, enters, f"send-keys -t {pane} C-m")
            await super().press_once(number, enters, commands)

    injector.ledger = Late(house.control, pane)
    assert (await injector.deliver(1, "once")).enters == 1
    assert house.taken() == ["once"]


async def test_without_its_words_in_the_server_nothing_is_put_in_and_nothing_noted(
    house: House,
) -> None:
    pane = await house.open("composer")
    ledger = house.injector(pane).ledger
    with pytest.raises(TmuxRefused):
        await ledger.paste_once(1, pasting("nowhere", pane), "mine")
    entry = await ledger.read()
    assert (entry.pasted, entry.owners) == (0, {})


async def test_a_draft_of_a_person_is_neither_sent_nor_overwritten(house: House) -> None:
    pane = await house.open("composer")
    await house.shows(pane, ">")
    await house.panes.press(pane, "d", "r", "a", "f", "t")
    await house.shows(pane, "> draft")
    hasty = house.injector(pane, patience=QUICK.model_copy(update={"ready_seconds": 0.05}))
    with pytest.raises(NotListening, match="its input holds other text"):
        await hasty.deliver(1, "message")
    await house.panes.press(pane, *["BSpace"] * 5)
    await house.injector(pane).deliver(1, "message")
    assert house.taken() == ["message"]


async def test_a_composer_that_is_not_there_yet_is_waited_for(house: House) -> None:
    pane = await house.panes.open(
        Program(
            name="planner", argv=("sh", "-c", f"read line; exec {_quoted(house)}"), cwd=house.root
        )
    )
    await house.activity.follow(pane)
    delivering = asyncio.ensure_future(house.injector(pane).deliver(1, "message"))
    await house.control.run(f"send-keys -t {pane} Enter")
    await delivering
    assert house.taken() == ["message"]


async def test_a_paste_that_never_shows_is_in_doubt_and_never_repeated(house: House) -> None:
    pane = await house.panes.open(
        Program(name="planner", argv=("sh", "-c", "stty -echo raw; printf '\\033[?2004h> '; exec cat >got"), cwd=house.root)
    )  # fmt: skip
    await house.activity.follow(pane)
    hasty = house.injector(pane, patience=QUICK.model_copy(update={"paint_seconds": 0.1}))
    for _ in range(2):
        with pytest.raises(DeliveryInDoubt, match="did not appear"):
            await hasty.deliver(1, "message")
    got = house.root / "got"
    await retry_until(lambda: got.read_bytes() == b"\x1b[200~message\x1b[201~")
    await hasty.ledger.reopen(1)
    with pytest.raises(DeliveryInDoubt):
        await hasty.deliver(1, "message")
    await retry_until(lambda: got.read_bytes() == b"\x1b[200~message\x1b[201~" * 2)


async def test_words_that_went_before_enter_was_pressed_are_in_doubt(house: House) -> None:
    """A supervisor was killed when it had seen them, and a person removed them."""
    pane = await house.open("composer")
    injector = house.injector(pane)
    await house.shows(pane, ">")
    await house.control.run(loading("first", "abc"))
    await injector.ledger.paste_once(1, pasting("first", pane))
    await house.shows(pane, "> abc")
    await injector.ledger.note_visible(1)
    await house.panes.press(pane, *["BSpace"] * 3)
    await retry_until(lambda: _is_empty(house, pane))
    hasty = house.injector(pane, patience=QUICK.model_copy(update={"paint_seconds": 0.1}))
    with pytest.raises(DeliveryInDoubt, match="before Enter was pressed"):
        await hasty.deliver(1, "abc")
    await injector.ledger.reopen(1)
    await injector.deliver(1, "abc")
    assert house.taken() == ["abc"]


async def _is_empty(house: House, pane: str) -> bool:
    return "abc" not in (await look(house.control, pane)).text


async def test_what_was_sent_cannot_be_opened_again(house: House) -> None:
    injector = house.injector(await house.open("composer"))
    await injector.deliver(1, "sent")
    with pytest.raises(BadInput, match="was already sent"):
        await injector.ledger.reopen(1)


async def test_a_program_without_bracketed_paste_gets_one_line_that_names_a_private_file(
    house: House,
) -> None:
    injector = house.injector(await house.open("unbracketed"), "reference")
    delivered = await injector.deliver(1, HARD)
    (line,) = house.taken()
    assert delivered.as_file
    assert Path(line.split(" in the file ")[1].split(" - ")[0]).read_text() == HARD
    await injector.deliver(2, "one line goes as it is")
    assert house.taken()[1:] == ["one line goes as it is"]


async def test_a_huge_message_goes_as_a_file(house: House) -> None:
    injector = house.injector(await house.open("composer"))
    huge = "all work and no play\n" * 10_000
    assert (await injector.deliver(1, huge)).as_file
    (line,) = house.taken()
    assert Path(line.split(" in the file ")[1].split(" - ")[0]).read_text() == huge


async def test_words_with_a_sign_that_the_program_spoils_go_as_a_file(house: House) -> None:
    patience = QUICK.model_copy(update={"spoilt": "\t"})
    injector = house.injector(await house.open("composer"), patience=patience)
    assert (await injector.deliver(1, "all:\n\tmake it")).as_file
    assert not (await injector.deliver(2, "all:\n    make it")).as_file
    line, words = house.taken()
    assert Path(line.split(" in the file ")[1].split(" - ")[0]).read_text() == "all:\n\tmake it"
    assert words == "all:\n    make it"


async def test_words_of_which_too_little_is_surely_drawn_go_as_a_file(house: House) -> None:
    injector = house.injector(await house.open("composer"))
    assert (await injector.deliver(1, "👍")).as_file
    assert (await injector.deliver(2, "👍 yes")).as_file
    assert not (await injector.deliver(3, "👍 yes, go on")).as_file


@pytest.mark.soak  # test_settling.py has what comes of it
async def test_what_a_person_does_with_words_that_stand_in_the_input_is_no_sending(
    house: House,
) -> None:
    pane = await house.open("composer")
    injector = house.injector(pane, patience=QUICK.model_copy(update={"paint_seconds": 3.0}))
    keyboard = Keyboard(house.control, pane, SystemClock())
    assert await injector.composer.until(lambda it: it == "empty", "hello", 30.0) == "empty"
    await house.control.run(loading("left", "hello"))
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
    assert house.taken() == []


async def test_a_plain_line_program_gets_each_line_with_enter(house: House) -> None:
    injector = house.injector(await house.open("echo"), "lines")
    await injector.deliver(1, "one\ntwo;\n\nC-c\n")
    await injector.deliver(2, "-three")
    assert (await injector.deliver(1, "one\ntwo;\n\nC-c\n")).before
    await retry_until(lambda: house.taken() == ["one", "two;", "", "C-c", "-three"])


async def test_a_line_that_a_terminal_would_cut_goes_as_a_file(house: House) -> None:
    injector = house.injector(await house.open("echo"), "lines")
    assert (await injector.deliver(1, "x" * 6000)).as_file
    (line,) = await retry_until(house.taken)
    assert Path(line.split(" in the file ")[1].split(" - ")[0]).read_text() == "x" * 6000


async def test_a_person_who_scrolls_back_does_not_hold_up_a_message(house: House) -> None:
    pane = await house.open("composer")
    await house.shows(pane, ">")
    await house.control.run(f"copy-mode -t {pane}")
    await house.injector(pane).deliver(1, "message")
    assert house.taken() == ["message"]


async def test_a_program_that_ends_instead_of_taking_a_message_is_told_with_its_last_words(
    house: House,
) -> None:
    pane = await house.open("crashing")
    with pytest.raises(ProgramEnded, match="in pane %0 ended") as told:
        await house.injector(pane).deliver(1, "message")
    assert "fatal: out of memory" in told.value.last_output


async def test_a_pane_that_is_closed_meanwhile_is_told(house: House) -> None:
    pane = await house.open("composer")
    await house.open("composer", "executer")
    await house.control.run(f"kill-pane -t {pane}")
    with pytest.raises(PaneGone):
        await house.injector(pane).deliver(1, "message")


@pytest.mark.soak
async def test_a_connection_that_is_lost_meanwhile_costs_nothing(house: House) -> None:
    injector = house.injector(await house.open("swallowing"))
    server = (await house.server.identity()).pid
    delivering = asyncio.ensure_future(injector.deliver(1, HARD))
    client = await client_of(house)
    os.kill(server, signal.SIGSTOP)  # so that it answers none of what is being asked
    os.kill(client, signal.SIGKILL)
    await retry_until(lambda: is_gone(client))
    os.kill(server, signal.SIGCONT)
    await delivering
    assert house.taken() == [HARD]


async def test_a_late_command_of_a_dead_supervisor_pastes_nothing_twice(house: House) -> None:
    pane = await house.open("composer")
    injector = house.injector(pane)
    await injector.deliver(1, "once")
    await house.control.run(loading("late", "once"))
    await injector.ledger.paste_once(1, pasting("late", pane))
    await injector.ledger.press_once(1, 0, f"send-keys -t {pane} C-m")
    await injector.deliver(2, "then")
    assert house.taken() == ["once", "then"]


async def test_the_ledger_is_the_panes_own(house: House) -> None:
    first = house.injector(await house.open("composer"))
    second = house.injector(await house.open("composer", "executer"))
    await first.deliver(1, "one")
    assert (await first.ledger.next_number(), await second.ledger.next_number()) == (2, 1)


async def test_no_buffer_with_a_message_is_left_in_the_server(house: House) -> None:
    injector = house.injector(await house.open("composer"))
    await injector.deliver(1, "private words")
    assert await house.control.ask("list-buffers") == []


def _quoted(house: House) -> str:
    return " ".join(house.program("composer").argv)
