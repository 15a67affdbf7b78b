"""A Podium that is killed in the middle of a turn leaves a turn that the next one goes on with."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.agents.tui.pair_harness import Podium, a_turn, message_in, on_stage
from tests.unit.sandbox.trees import ROOT

DYING = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.unit.agents.tui.pair_harness import Podium, a_turn
from podium.agents.tui import delivery, ledger, panes, reply_reader, side

def dies(owner, name, after):
    whole = getattr(owner, name)
    if asyncio.iscoroutinefunction(whole):
        async def dying(*args, **named):
            if not after:
                os.kill(os.getpid(), signal.SIGKILL)
            await whole(*args, **named)
            os.kill(os.getpid(), signal.SIGKILL)
    else:
        def dying(*args, **named):
            if not after:
                os.kill(os.getpid(), signal.SIGKILL)
            whole(*args, **named)
            os.kill(os.getpid(), signal.SIGKILL)
    setattr(owner, name, dying)

async def main():
    podium = Podium(Path(sys.argv[1]))
    agent = podium.seat("swallowing", primer=sys.argv[4])
    owner, name = sys.argv[2].split(".")
    dies(getattr({"OutboundMessages": delivery, "Panes": panes, "Side": side, "Ledger": ledger, "ScreenReplyReader": reply_reader}[owner], owner), name, sys.argv[3] == "after")
    await agent.ask(a_turn())
asyncio.run(main())
"""

TIMESTAMPS = [
    ("Panes.open", "before"),
    ("Panes.open", "after"),
    ("Side.take_part", "after"),
    ("OutboundMessages.keep", "before"),
    ("OutboundMessages.keep", "after"),
    ("Ledger.paste_once", "after"),
    ("Ledger.note_visible", "after"),
    ("Ledger.press_once", "after"),
    ("Ledger.note_sent", "before"),
    ("Ledger.note_sent", "after"),
    ("ScreenReplyReader._blocks", "after"),
]
LIGHT = TIMESTAMPS[5:6]


@pytest.mark.parametrize(("where", "when"), LIGHT)
async def test_a_turn_goes_on_after_a_kill(root: Path, where: str, when: str) -> None:
    await check_killed(root, where, when, primer="")


@pytest.mark.soak
@pytest.mark.parametrize("primer", ["", "You are PLANNER."])
@pytest.mark.parametrize(("where", "when"), TIMESTAMPS)
async def test_kills_are_survived_at_every_point(
    root: Path, where: str, when: str, primer: str
) -> None:
    await check_killed(root, where, when, primer)


async def check_killed(root: Path, where: str, when: str, primer: str) -> None:
    command = [sys.executable, "-c", DYING, str(root), where, when, primer]
    ended = subprocess.run(command, cwd=ROOT, timeout=200, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    async with on_stage(root) as podium:
        turn = a_turn()
        reply = await podium.seat("swallowing", primer=primer).ask(turn)
        assert message_in(reply, turn) is not None
        assert len(podium.taken()) == (2 if primer else 1)


async def test_two_podiums_that_ask_the_same_turn_at_once_send_it_once_and_both_hear_the_answer(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        other = Podium(root)
        agents = [item.seat("composer", primer="You are PLANNER.") for item in (podium, other)]
        turn = a_turn()
        replies = await asyncio.gather(*(agent.ask(turn) for agent in agents))
        assert all(message_in(reply, turn) for reply in replies)
        assert len(podium.taken()) == 2
        assert podium.launcher.on_terminals + other.launcher.on_terminals == 1
        await other.pair.close()


async def test_an_answer_that_came_while_nobody_listened_is_found_and_not_asked_for_again(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        turn = a_turn()
        first = await podium.seat("composer").ask(turn)
        other = Podium(root)
        again = await other.seat("composer").ask(turn)
        assert again.text == first.text
        assert len(podium.taken()) == 1
        await other.pair.close()
