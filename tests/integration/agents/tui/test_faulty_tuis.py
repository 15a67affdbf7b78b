"""Messages to programs that misbehave in every way that was seen: each arrives whole and once, or that is told."""

from __future__ import annotations

import asyncio

import pytest

from podium.agents.tui import Manner
from podium.agents.tui.control import NotListening, ProgramEnded
from podium.testing import retry_until
from tests.integration.agents.tui.tmux_harness import QUICK, Harness
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
async def test_every_message_arrives_whole_and_once(harness: Harness, kind: str) -> None:
    injector = harness.injector(await harness.open(kind))
    for number, message in enumerate(MESSAGES, 1):
        await injector.deliver(number, message)
    assert harness.taken() == MESSAGES


@pytest.mark.parametrize(("kind", "manner"), [("unbracketed", "reference"), ("echo", "lines")])
async def test_programs_without_bracketed_paste_get_every_line(
    harness: Harness, kind: str, manner: Manner
) -> None:
    injector = harness.injector(await harness.open(kind), manner)
    for number, message in enumerate(("one", "two", "three"), 1):
        await injector.deliver(number, message)
    await retry_until(lambda: harness.taken() == ["one", "two", "three"])


async def test_question_in_place_of_the_composer_is_reported_and_nothing_is_typed_into_it(
    harness: Harness,
) -> None:
    pane = await harness.open("modal")
    await harness.shows(pane, "trust this folder")
    hasty = harness.injector(pane, patience=QUICK.model_copy(update={"ready_seconds": 0.05}))
    with pytest.raises(NotListening, match="asking something"):
        await hasty.deliver(1, "y")
    await harness.shows(pane, "trust this folder")
    await harness.panes.press(pane, "y")
    await harness.injector(pane).deliver(1, "message")
    assert harness.taken() == ["message"]


@pytest.mark.soak
async def test_composer_that_is_briefly_gone_has_not_let_go(harness: Harness) -> None:
    steady = QUICK.model_copy(update={"settle_seconds": 0.7, "enter_seconds": 30.0})
    injector = harness.injector(await harness.open("blinking"), patience=steady)
    assert (await injector.deliver(1, "message")).enters == 2
    assert harness.taken() == ["message"]


async def test_a_pane_that_is_resized_meanwhile_takes_the_message_once(harness: Harness) -> None:
    injector = harness.injector(await harness.open("resizing"))
    for number, columns in enumerate((60, 140, 90), 1):
        await asyncio.gather(
            injector.deliver(number, f"message {number}\nfor {columns}"),
            harness.panes.resize(columns, 30),
        )
    assert harness.taken() == ["message 1\nfor 60", "message 2\nfor 140", "message 3\nfor 90"]


async def test_a_program_that_dies_while_it_answers_had_taken_the_message(harness: Harness) -> None:
    pane = await harness.open("halfway")
    injector = harness.injector(pane)
    with pytest.raises(ProgramEnded) as error:
        await injector.deliver(1, "message")
    assert "1. begin to" in error.value.last_output
    assert harness.taken() == ["message"]
    entry = await injector.ledger.read()
    assert (entry.pasted, entry.visible, entry.sent, entry.enters) == (1, 1, 0, 1)
