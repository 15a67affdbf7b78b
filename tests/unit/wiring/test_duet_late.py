"""Late set-up of a pair's gate: looking needs none; a restart of a program has one before anything is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.config import policy_layers
from podium.config.configuration import Configuration
from podium.core.errors import BadInput
from podium.jobs.duet.confinement import LazyHookServers
from podium.jobs.duet.pairs import MAIN, PairRequest, pair_named
from podium.jobs.duet.terminals import observed_pair, pair_held
from podium.ports import HookServers
from podium.testing import FakeHookDoors
from tests.integration.wiring.test_podium import configured
from tests.unit.agents.tui.pair_harness import a_turn


@pytest.fixture
async def podium(tmp_path: Path) -> AsyncIterator[Podium]:
    podium = configured(tmp_path)
    yield podium
    await podium.close()


async def test_a_policy_that_cannot_be_used_hinders_nobody_from_looking_and_nothing_is_restarted(
    podium: Podium, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(configuration: Configuration) -> object:
        raise BadInput("rule 3 does not do what its example says; mend it")

    monkeypatch.setattr(policy_layers, "build_gate", broken)
    pair = pair_named(podium, MAIN, PairRequest(), {})
    async with observed_pair(podium, pair) as seen:
        assert {state.status for state in await seen.states()} == {None}, "they are not up"
    with pytest.raises(BadInput, match="rule 3"):
        async with pair_held(podium, pair):
            pytest.fail("it could be restarted")


async def test_turns_that_begin_together_have_their_doors_built_once() -> None:
    built = 0

    async def build() -> HookServers:
        nonlocal built
        built += 1
        await asyncio.sleep(0)
        return FakeHookDoors()

    doors = LazyHookServers(build)

    async def take_turn() -> None:
        async with doors.open(a_turn(), agent="x"):
            pass

    await asyncio.gather(take_turn(), take_turn())
    assert built == 1
