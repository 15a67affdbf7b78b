"""Words that were put in and never seen hold up nobody for good, and reach the program once at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.agents.tui import TuiAgent
from podium.agents.tui.control import DeliveryInDoubt
from podium.agents.tui.ledger import Ledger
from podium.core.errors import NeedsHuman
from podium.core.turns import Turn
from podium.testing import retry_until
from tests.soaking import in_soak
from tests.unit.agents.tui.pair_harness import Podium, a_turn, message_in, on_stage

HASTY: dict[str, Any] = {"paint_seconds": 0.3}


async def is_received(agent: TuiAgent, turn: Turn) -> bool:
    return message_in(await agent.ask(turn), turn) is not None


@pytest.mark.soak
@pytest.mark.parametrize("writes", [False, in_soak(True)])
async def test_paste_the_program_ignored_is_reported_and_sent_again_by_a_retry(
    root: Path, writes: bool
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("unheeding", writes=writes, options=HASTY)
        with pytest.raises(
            NeedsHuman, match=r"did not show .*podium duet attach.*podium duet retry"
        ):
            await agent.ask(a_turn())
        assert await is_received(agent, a_turn())
        assert len(podium.taken()) == 1
        assert (await agent.side.injector.ledger.read()).sent == 1


@pytest.mark.soak
async def test_another_task_gets_through_and_the_first_is_sent_when_it_is_asked_again(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        with pytest.raises(DeliveryInDoubt):
            await podium.seat("unheeding", options=HASTY).ask(a_turn(1))
        other = Podium(root)
        agent = other.seat("unheeding", options=HASTY)
        assert await is_received(agent, a_turn(2, words="Another task."))
        assert await is_received(agent, a_turn(1))
        assert [words[:4] for words in podium.taken()] == ["Anot", "Mend"]
        await other.pair.close()


@pytest.mark.soak
async def test_one_that_nobody_waits_for_is_not_sent_by_whoever_comes_next(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("unheeding", options=HASTY)
        with pytest.raises(DeliveryInDoubt):
            await agent.ask(a_turn(1))
        await give_up(agent)
        await podium.pair.nudge("planner", "How far are you?")
        await retry_until(lambda: podium.taken() == ["How far are you?"])
        assert (await agent.side.injector.ledger.read()).sent == 2


@pytest.mark.soak
@pytest.mark.parametrize("writes", [in_soak(False), True])
async def test_words_that_a_person_removed_before_enter_are_sent_again_by_a_retry(
    root: Path, writes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", writes=writes, options=HASTY)
        await asked_with(podium, agent, monkeypatch, ["BSpace"] * 400)
        assert podium.taken() == []
        assert await is_received(agent, a_turn())
        assert await is_received(agent, a_turn(2))
        assert len(podium.taken()) == 2


@pytest.mark.parametrize("writes", [False, in_soak(True)])
async def test_words_that_a_person_sent_himself_are_not_sent_again(
    root: Path, writes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", writes=writes, options=HASTY)
        await asked_with(podium, agent, monkeypatch, ["Enter"])
        assert await is_received(agent, a_turn())
        assert len(podium.taken()) == 1
        assert await is_received(agent, a_turn(2))


async def test_what_a_person_left_in_the_input_is_not_written_over(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", options=HASTY)
        await asked_with(podium, agent, monkeypatch, [*["BSpace"] * 400, "d", "r", "a", "f", "t"])
        with pytest.raises(DeliveryInDoubt):
            await agent.ask(a_turn())
        await podium.pair.send_keys("planner", *["BSpace"] * 5)
        assert await is_received(agent, a_turn())
        assert len(podium.taken()) == 1


async def asked_with(
    podium: Podium, agent: TuiAgent, monkeypatch: pytest.MonkeyPatch, keys: list[str]
) -> None:
    """A turn in which a person presses keys between the paste and Enter."""
    whole = Ledger.note_visible

    async def meddled(self: Ledger, number: int) -> None:
        await whole(self, number)
        await podium.pair.send_keys("planner", *keys)
        injector = agent.side.injector
        await retry_until(lambda: _is_away(podium, agent))
        assert (await injector.ledger.read()).enters == 0

    with monkeypatch.context() as meddling:
        meddling.setattr(Ledger, "note_visible", meddled)
        with pytest.raises(DeliveryInDoubt, match="before Enter was pressed"):
            await agent.ask(a_turn())


async def _is_away(podium: Podium, agent: TuiAgent) -> bool:
    screen = await podium.pair.screen("planner")
    return agent.side.adapter.composer(screen, a_turn().prompt) != "ours"


async def give_up(agent: TuiAgent) -> None:
    """As a turn does that is cancelled."""
    characters = agent.side.outbound
    owner = (await agent.side.injector.ledger.read()).owners[1]
    character = characters.read(owner)
    assert character is not None
    characters.keep(character.model_copy(update={"given_up": True}))
