"""Hook doors with no socket behind them."""

from __future__ import annotations

import pytest

from podium.core.turns import Turn
from podium.ports import HookServers
from podium.testing import FakeHookDoors

TURN = Turn(run_id="run_a", step_key="ask", role="developer", prompt="hello", workspace="w")


async def test_every_turn_gets_the_door_that_was_prepared() -> None:
    doors: HookServers = (fake := FakeHookDoors({"DOOR": "here"}, ("apr_1",)))
    async with doors.open(TURN) as door:
        assert (dict(door.env), door.waiting_approvals) == ({"DOOR": "here"}, ("apr_1",))
        assert (fake.turns, fake.opened) == ([TURN], 1)
    assert fake.opened == 0


async def test_a_door_is_closed_when_its_turn_breaks() -> None:
    doors = FakeHookDoors()
    with pytest.raises(ZeroDivisionError):
        async with doors.open(TURN):
            raise ZeroDivisionError
    assert doors.opened == 0
