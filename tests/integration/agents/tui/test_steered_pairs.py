"""Pairs on real terminals, seen and steered through the typed API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from podium.agents.tui import SteeredPairs, TerminalPair
from podium.core.errors import AgentLost, BadInput
from podium.core.terminals import KeysPressed, PairSize, Terminal, TerminalUpdate
from podium.rpc import reach, serve
from podium.testing import retry_until
from tests.unit.agents.tui.pair_harness import Podium, kill_program, on_stage

PLANNER, EXECUTER = Terminal(side="PLANNER"), Terminal(side="EXECUTER")


def pairs_in(root: Path) -> SteeredPairs:
    """Each time a Podium of its own, as other processes would hold the pair."""

    @asynccontextmanager
    async def hold(name: str) -> AsyncIterator[TerminalPair]:
        if name != "main":
            raise BadInput(f"there is no pair {name!r}")
        podium = seated(Podium(root))
        try:
            yield podium.pair
        finally:
            await podium.pair.close()

    @asynccontextmanager
    async def up(name: str) -> AsyncIterator[TerminalPair]:
        async with hold(name) as held:
            await held.come_up()
            yield held

    return SteeredPairs(observed=hold, seated=hold, up=up)


def seated(podium: Podium) -> Podium:
    podium.seat("composer", name="planner")
    podium.seat("composer", name="executer")
    return podium


async def test_another_process_starts_sees_and_steers_a_pair(root: Path) -> None:
    async with (
        on_stage(root),
        serve(pairs_in(root), root / "api" / "s"),
        reach(root / "api" / "s") as terminals,
    ):
        states = await terminals.start("main")
        assert [(state.terminal, state.status) for state in states] == [
            (PLANNER, "ready"),
            (EXECUTER, "ready"),
        ]
        await terminals.send_keys(KeysPressed(terminal=EXECUTER, keys=("hel", "lo")))

        async def is_typed() -> bool:
            return "hello" in "\n".join((await terminals.capture(EXECUTER, whole=True)).lines)

        await retry_until(is_typed, seconds=60)
        await terminals.resize(PairSize(columns=90, rows=20))
        picture = await terminals.capture(PLANNER, whole=False)
        assert (picture.columns, picture.rows) == (90, 20)
        assert "hello" not in "\n".join(picture.lines)
        before = states[0].pid
        again = await terminals.resume(PLANNER)
        assert again.status == "ready"
        assert again.pid not in (0, before)


@pytest.mark.soak
async def test_whoever_watches_a_pair_sees_it_come_up_show_something_and_die(root: Path) -> None:
    terminals = pairs_in(root)
    async with on_stage(root) as podium, aclosing(terminals.watch("main")) as news:
        first = [await anext(news), await anext(news)]
        assert [(item.state.status, item.picture) for item in first] == [("gone", None)] * 2
        seated(podium)
        await podium.pair.come_up()
        await seen(news, lambda message: message.state.status == "ready")
        await podium.pair.send_keys("executer", "hello")
        await seen(news, lambda message: "hello" in shown(message))
        await kill_program(podium, "executer")
        dead = await seen(news, lambda message: message.state.pid == 0)
        assert (dead.state.terminal, dead.state.status) == (EXECUTER, "gone")


async def seen(news: AsyncIterator[TerminalUpdate], what: object) -> TerminalUpdate:
    assert callable(what)
    async for new in news:
        if what(new):
            return new
    raise AssertionError("the watch ended")


def shown(output: TerminalUpdate) -> str:
    return "\n".join(output.picture.lines) if output.picture else ""


async def test_a_pair_that_is_not_up_says_so_and_nothing_is_started(root: Path) -> None:
    terminals = pairs_in(root)

    with pytest.raises(AgentLost, match="not running; start it with"):
        await terminals.capture(PLANNER, whole=False)

    assert not (root / "s").exists()
