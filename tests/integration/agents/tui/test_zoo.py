"""Messages to programs that misbehave in every way that was seen: each arrives whole and once, or that is told."""

from __future__ import annotations

import asyncio

import pytest

from podium.agents.tui import Manner
from podium.agents.tui.control import NotListening, ProgramEnded
from podium.testing import retry_until
from tests.integration.agents.tui.rig import QUICK, House
from tests.soaking import in_soak

MESSAGES = ["one line", "several\nlines;\n\nand more\nstill", "long " * 60 + "\nand short", "last"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "kind",
    [
        "alternate",
        "resizing",
        "swallowing",
        "wrapping",
        *map(in_soak, ("banner", "ink", "slow", "spinning")),
    ],
)
async def test_every_message_arrives_whole_and_once(house: House, kind: str) -> None:
    injector = house.injector(await house.open(kind))
    for number, message in enumerate(MESSAGES, 1):
        await injector.deliver(number, message)
    assert house.taken() == MESSAGES


@pytest.mark.parametrize(("kind", "manner"), [("unbracketed", "reference"), ("echo", "lines")])
async def test_programs_without_bracketed_paste_get_every_line(
    house: House, kind: str, manner: Manner
) -> None:
    injector = house.injector(await house.open(kind), manner)
    for number, message in enumerate(("one", "two", "three"), 1):
        await injector.deliver(number, message)
    await retry_until(lambda: house.taken() == ["one", "two", "three"])


async def test_a_question_in_place_of_the_composer_is_told_and_nothing_is_typed_into_it(
    house: House,
) -> None:
    pane = await house.open("modal")
    await house.shows(pane, "trust this folder")
    hasty = house.injector(pane, patience=QUICK.model_copy(update={"ready_seconds": 0.05}))
    with pytest.raises(NotListening, match="asking something"):
        await hasty.deliver(1, "y")
    await house.shows(pane, "trust this folder")
    await house.panes.press(pane, "y")
    await house.injector(pane).deliver(1, "message")
    assert house.taken() == ["message"]


@pytest.mark.soak
async def test_a_composer_that_is_gone_for_a_moment_has_not_let_go(house: House) -> None:
    steady = QUICK.model_copy(update={"settle_seconds": 0.7, "enter_seconds": 30.0})
    injector = house.injector(await house.open("blinking"), patience=steady)
    assert (await injector.deliver(1, "message")).enters == 2
    assert house.taken() == ["message"]


async def test_a_pane_that_is_resized_meanwhile_takes_the_message_once(house: House) -> None:
    injector = house.injector(await house.open("resizing"))
    for number, columns in enumerate((60, 140, 90), 1):
        await asyncio.gather(
            injector.deliver(number, f"message {number}\nfor {columns}"),
            house.panes.resize(columns, 30),
        )
    assert house.taken() == ["message 1\nfor 60", "message 2\nfor 140", "message 3\nfor 90"]


async def test_a_program_that_dies_while_it_answers_had_taken_the_message(house: House) -> None:
    pane = await house.open("halfway")
    injector = house.injector(pane)
    with pytest.raises(ProgramEnded) as told:
        await injector.deliver(1, "message")
    assert "1. begin to" in told.value.last_output
    assert house.taken() == ["message"]
    entry = await injector.ledger.read()
    assert (entry.pasted, entry.visible, entry.sent, entry.enters) == (1, 1, 0, 1)
