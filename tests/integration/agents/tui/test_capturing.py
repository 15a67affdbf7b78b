"""Conversion of a pane's content into plain text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podium.agents.tui import Program, history, look
from podium.agents.tui.control import PaneGone, ProgramEnded
from podium.agents.tui.screen import refuse_dead
from podium.testing import retry_until
from tests.integration.agents.tui.rig import House


async def shell(house: House, line: str) -> str:
    program = Program(name="shell", argv=("sh", "-c", line), cwd=house.root)
    return await house.panes.open(program)


async def test_colours_and_blanks_are_gone_and_wrapped_lines_are_one(house: House) -> None:
    long = "x" * 150
    script = f"printf '\\033[31mred\\033[0m   \\n{long}\\n\\342\\234\\246 done\\n'; exec sleep 1000"
    pane = await shell(house, script)
    screen = await house.shows(pane, "done")
    assert screen.lines == ("red", long, "✦ done")
    assert (screen.columns, screen.rows, screen.alternate) == (100, 30, False)
    assert screen.cursor == (0, 4)


async def test_a_block_longer_than_the_screen_is_in_the_history(house: House) -> None:
    pane = await shell(house, "seq 1 3000; exec sleep 1000")
    await house.shows(pane, "3000")
    assert await history(house.control, pane) == tuple(map(str, range(1, 3001)))


async def test_the_second_screen_and_the_title_are_told(house: House) -> None:
    pane = await shell(house, "printf '\\033[?1049h\\033]0;a\\ttitle\\007there'; exec sleep 1000")
    screen = await house.shows(pane, "there")
    assert screen.alternate
    assert screen.title.startswith("a")


async def test_last_words_of_a_program_that_ended_are_told(house: House) -> None:
    pane = await shell(house, "seq 1 100; echo 'fatal: no key' >&2; exit 7")

    async def is_dead() -> bool:
        return (await look(house.control, pane)).dead

    await retry_until(is_dead)
    screen = await look(house.control, pane)
    assert screen.exit_code in (7, None), "tmux sometimes never learns it"
    with pytest.raises(ProgramEnded, match="ended with exit code 7") as told:
        await refuse_dead(house.control, pane, replace(screen, exit_code=7))
    with pytest.raises(ProgramEnded, match="ended; start it again"):
        await refuse_dead(house.control, pane, replace(screen, exit_code=None))
    assert "fatal: no key" in told.value.last_output
    assert "99" in told.value.last_output


async def test_a_pane_that_was_closed_is_told(house: House) -> None:
    pane = await house.open("composer")
    await house.open("composer", "executer")
    await house.control.run(f"kill-pane -t {pane}")
    with pytest.raises(PaneGone):
        await look(house.control, pane)
