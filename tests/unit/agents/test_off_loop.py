"""Homes are swept and laid out beside the event loop, and never left half done."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from podium.agents.headless.home import home_off_loop, private_home
from podium.core.turns import Turn
from podium.testing import retry_until
from tests.unit.agents.test_opencode_home import deps_in, turn_in


async def test_a_home_is_left_whatever_happens_in_it(tmp_path: Path) -> None:
    deps, turn = deps_in(tmp_path), turn_in(tmp_path)
    with pytest.raises(ValueError, match="odd"):
        async with home_off_loop(deps, turn, "coder") as home:
            raise ValueError("odd")
    assert not home.temporary.exists()
    assert _number_of_free_home(tmp_path, turn) == 1


async def test_a_turn_that_is_cancelled_as_it_enters_keeps_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deps, turn, begun, may_go_on = deps_in(tmp_path), turn_in(tmp_path), *_two_events()
    entered = type(private_home(deps, turn, "x")).__enter__

    def slowly(context: object) -> object:
        begun.set()
        may_go_on.wait(120)
        return entered(context)  # type: ignore[arg-type]

    monkeypatch.setattr(type(private_home(deps, turn, "x")), "__enter__", slowly)

    async def stay() -> None:
        async with home_off_loop(deps, turn, "coder"):
            await asyncio.Event().wait()

    staying = asyncio.create_task(stay())
    await retry_until(begun.is_set)
    staying.cancel()
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await staying
    monkeypatch.undo()
    assert _number_of_free_home(tmp_path, turn) == 1


def _two_events() -> tuple[threading.Event, threading.Event]:
    return threading.Event(), threading.Event()


def _number_of_free_home(folder: Path, turn: Turn) -> int:
    with private_home(deps_in(folder), turn, "coder") as home:
        return home.number
