"""Conversion of a pane's content into plain text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podium.agents.tui import Program, history, look
from podium.agents.tui.control import PaneGone, ProgramEnded
from podium.agents.tui.screen import refuse_dead
from podium.testing import retry_until
from tests.integration.agents.tui.tmux_harness import Harness


async def shell(harness: Harness, line: str) -> str:
    program = Program(name="shell", argv=("sh", "-c", line), cwd=harness.root)
    return await harness.panes.open(program)


async def test_colours_and_blanks_are_gone_and_wrapped_lines_are_one(harness: Harness) -> None:
    long = "x" * 150
    script = f"printf '\\033[31mred\\033[0m   \\n{long}\\n\\342\\234\\246 done\\n'; exec sleep 1000"
    pane = await shell(harness, script)
    screen = await harness.shows(pane, "done")
    assert screen.lines == ("red", long, "✦ done")
    assert (screen.columns, screen.rows, screen.alternate) == (100, 30, False)
    assert screen.cursor == (0, 4)


async def test_a_block_longer_than_the_screen_is_in_the_history(harness: Harness) -> None:
    pane = await shell(harness, "seq 1 3000; exec sleep 1000")
    await harness.shows(pane, "3000")
    assert await history(harness.control, pane) == tuple(map(str, range(1, 3001)))


async def test_alternate_screen_and_the_title_are_reported(harness: Harness) -> None:
    pane = await shell(harness, "printf '\\033[?1049h\\033]0;a\\ttitle\\007there'; exec sleep 1000")
    screen = await harness.shows(pane, "there")
    assert screen.alternate
    assert screen.title.startswith("a")


async def test_last_words_of_an_ended_program_are_reported(harness: Harness) -> None:
    pane = await shell(harness, "seq 1 100; echo 'fatal: no key' >&2; exit 7")

    async def is_dead() -> bool:
        return (await look(harness.control, pane)).dead

    await retry_until(is_dead)
    screen = await look(harness.control, pane)
    assert screen.exit_code in (7, None), "tmux sometimes never learns it"
    with pytest.raises(ProgramEnded, match="ended with exit code 7") as error:
        await refuse_dead(harness.control, pane, replace(screen, exit_code=7))
    with pytest.raises(ProgramEnded, match="ended; start it again"):
        await refuse_dead(harness.control, pane, replace(screen, exit_code=None))
    assert "fatal: no key" in error.value.last_output
    assert "99" in error.value.last_output


async def test_closed_pane_is_reported(harness: Harness) -> None:
    pane = await harness.open("composer")
    await harness.open("composer", "executer")
    await harness.control.run(f"kill-pane -t {pane}")
    with pytest.raises(PaneGone):
        await look(harness.control, pane)
