"""When a program is looked at: seldom while it works all the time, at once when it ended or is waited for."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.tui import GenericTui, TerminalScreen, screen_watch
from podium.agents.tui.activity import Activity
from podium.agents.tui.adapter import TuiTimings
from podium.agents.tui.control import Control
from podium.agents.tui.screen_watch import LOOK_SECONDS, Sight
from tests.integration.agents.tui.test_generic import a_screen

BUSY = a_screen("Thinking (esc to interrupt)")


class Pulse:
    """A pane that writes all the time."""

    def __init__(self) -> None:
        self.count = 0
        self.ended = 0

    def signs(self, pane: str) -> int:
        self.count += 1
        return self.count

    def ends(self, pane: str) -> int:
        return self.ended


@pytest.fixture
def pulse() -> Pulse:
    return Pulse()


@pytest.fixture
def shown() -> list[TerminalScreen]:
    """The last is shown again and again."""
    return [BUSY]


@pytest.fixture
def sight(pulse: Pulse, shown: list[TerminalScreen], monkeypatch: pytest.MonkeyPatch) -> Sight:
    async def look(control: Control, pane: str) -> TerminalScreen:
        return shown.pop(0) if len(shown) > 1 else shown[0]

    monkeypatch.setattr(screen_watch, "look", look)
    generic = GenericTui(AgentOptions(name="x", command=("x",)))
    return Sight(cast("Control", None), cast("Activity", pulse), "%0", generic, TuiTimings())


async def looked_at_often(sight: Sight) -> float:
    """Until the next look is as far as it gets. Gives how far."""
    for _ in range(20):
        await sight.look()
    return sight.due_at - asyncio.get_running_loop().time()


async def test_one_that_is_busy_at_every_look_is_looked_at_ever_less_often(sight: Sight) -> None:
    await sight.look()
    assert sight.due_at - asyncio.get_running_loop().time() <= LOOK_SECONDS
    assert await looked_at_often(sight) > 10 * LOOK_SECONDS


async def test_when_its_program_ended_it_is_looked_at_at_once(sight: Sight, pulse: Pulse) -> None:
    await looked_at_often(sight)
    pulse.ended += 1
    assert sight.has_end
    assert sight.due_at <= asyncio.get_running_loop().time()
    await sight.look()
    assert not sight.has_end


@pytest.mark.soak
async def test_whoever_waits_for_it_does_not_wait_for_the_next_seldom_look(
    sight: Sight, shown: list[TerminalScreen]
) -> None:
    await looked_at_often(sight)
    shown[:] = [BUSY] * 9
    assert not await sight.until_ready("it", 12 * LOOK_SECONDS)
    assert len(shown) < 7, "at the beginning, meanwhile, and at the end"
