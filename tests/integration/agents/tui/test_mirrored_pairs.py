"""Panes mirrored for people who look on: the newest picture for everybody, read once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from podium.agents.tui import MirroredPairs, TerminalPair
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.terminals import KeyboardRequest, KeysPressed, PaneView, Terminal
from podium.testing import retry_until
from tests.unit.agents.tui.pair_harness import Podium, kill_program, on_stage

PLANNER, EXECUTER = Terminal(side="PLANNER"), Terminal(side="EXECUTER")


class Mirrored:
    """Counts how often the pair is held."""

    def __init__(self, root: Path) -> None:
        self.holds = self.now = 0
        self._root = root
        self.mirror = MirroredPairs(self._hold)

    @asynccontextmanager
    async def _hold(self, name: str) -> AsyncIterator[TerminalPair]:
        if name != "main":
            raise BadInput(f"there is no pair {name!r}")
        podium = Podium(self._root)
        podium.seat("composer", name="planner")
        podium.seat("composer", name="executer")
        self.holds += 1
        self.now += 1
        try:
            yield podium.pair
        finally:
            self.now -= 1
            await podium.pair.close()


@asynccontextmanager
async def mirrored(root: Path) -> AsyncIterator[tuple[Podium, Mirrored]]:
    async with on_stage(root) as podium:
        podium.seat("composer", name="planner")
        podium.seat("composer", name="executer")
        await podium.pair.come_up()
        yield podium, Mirrored(root)


def shown(view: PaneView) -> str:
    return "\n".join(view.frame.lines) if view.frame else ""


async def seen(
    views: AsyncGenerator[PaneView, None], what: Callable[[PaneView], object]
) -> PaneView:
    async with asyncio.timeout(120):
        async for view in views:
            if what(view):
                return view
    raise AssertionError("the look ended")


async def test_many_look_at_once_and_the_pair_is_held_once_and_let_go_of(root: Path) -> None:
    async with mirrored(root) as (podium, harness):
        looks = [harness.mirror.look(PLANNER) for _ in range(5)]
        firsts = await asyncio.gather(*(anext(look) for look in looks))
        assert {first.frame.columns for first in firsts if first.frame} == {100}
        await podium.pair.send_keys("planner", "hello")
        await asyncio.gather(*(seen(look, lambda view: "hello" in shown(view)) for look in looks))
        assert harness.holds == 1
        for look in looks:
            await look.aclose()
        await retry_until(lambda: harness.now == 0)


async def test_a_slow_looker_is_given_the_newest_picture_and_not_all_before_it(root: Path) -> None:
    async with mirrored(root) as (podium, harness), aclosing(harness.mirror.look(PLANNER)) as views:
        await anext(views)
        async with aclosing(harness.mirror.look(PLANNER)) as quick:
            for word in ("one ", "two ", "three"):
                await podium.pair.send_keys("planner", word)
                await seen(quick, lambda view, word=word: word.strip() in shown(view))  # type: ignore[misc]
        assert "one two three" in shown(await anext(views))


@pytest.mark.soak
async def test_keys_of_the_keyboard_holder_arrive_and_others_are_notified(root: Path) -> None:
    async with mirrored(root) as (_, harness), aclosing(harness.mirror.look(EXECUTER)) as views:
        await anext(views)
        keys = KeysPressed(terminal=EXECUTER, keys=("h", "i"), who="ann")
        with pytest.raises(NotPossibleNow, match="take it"):
            await harness.mirror.press(keys)
        hold = await harness.mirror.take(KeyboardRequest(terminal=EXECUTER, who="ann"))
        view = await seen(views, lambda view: view.keyboard.hold)
        assert view.keyboard.hold == hold
        await harness.mirror.press(keys)
        await seen(views, lambda view: "hi" in shown(view))
        with pytest.raises(NotPossibleNow, match="'ann' has the keyboard"):
            await harness.mirror.take(KeyboardRequest(terminal=EXECUTER, who="bob"))
        assert await harness.mirror.give(EXECUTER, "ann") == hold
        await seen(views, lambda view: view.keyboard.hold is None)


async def test_a_dead_program_and_a_pair_that_went_are_seen_as_such(root: Path) -> None:
    async with mirrored(root) as (podium, harness), aclosing(harness.mirror.look(PLANNER)) as views:
        await seen(views, lambda view: view.frame)
        await kill_program(podium)
        await seen(views, lambda view: view.frame and view.frame.dead)
        await podium.pair.depart()
        gone = await seen(views, lambda view: view.frame is None)
        assert gone.trouble


async def test_unknown_pair_is_reported_to_the_viewer(root: Path) -> None:
    harness = Mirrored(root)
    async with aclosing(harness.mirror.look(Terminal(pair="other", side="PLANNER"))) as views:
        with pytest.raises(BadInput, match="other"):
            await anext(views)
