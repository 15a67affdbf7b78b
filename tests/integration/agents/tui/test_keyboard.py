"""A person takes the keyboard of a program: Podium types nothing there until it is returned."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podium.agents.tui import TuiAgent
from podium.agents.tui.exchange import TurnTime
from podium.agents.tui.keyboard import Keyboard
from podium.core.errors import NeedsHuman, NotPossibleNow, TimedOut
from podium.core.keyboards import KeyboardHold
from podium.core.turns import Turn
from podium.platform.system_clock import SystemClock
from podium.testing import FixedClock, retry_until
from tests.unit.agents.tui.pair_harness import Podium, a_turn, message_in, on_stage

LONG_SECONDS = 600.0


async def up_with(podium: Podium, *ways: str, **answers: object) -> tuple[TuiAgent, Keyboard]:
    agent = podium.seat("composer", *ways, **answers)  # type: ignore[arg-type]
    await podium.pair.come_up()
    return agent, await podium.pair.keyboard("planner")


async def test_a_message_waits_until_the_keyboard_is_returned_and_goes_once(root: Path) -> None:
    async with on_stage(root) as podium:
        agent, keyboard = await up_with(podium)
        await keyboard.take("ann", LONG_SECONDS)
        turn = a_turn()
        asking = asyncio.create_task(agent.ask(turn))
        await looked_for_a_while(podium)
        assert podium.taken() == []
        assert (await keyboard.give("ann")) is not None
        assert message_in(await asking, turn) is not None
        assert len(podium.taken()) == 1


async def looked_for_a_while(podium: Podium) -> None:
    """Long enough that a router which looks away would have pasted: it needs some milliseconds."""
    for _ in range(50):
        await podium.pair.states()
        await asyncio.sleep(0.02)


async def test_what_was_on_its_way_when_the_keyboard_was_taken_is_not_pasted(root: Path) -> None:
    """The condition lies in the server: whoever looked before, and pastes after, finds it closed."""
    async with on_stage(root) as podium:
        agent, keyboard = await up_with(podium)
        await keyboard.take("ann", LONG_SECONDS)
        with pytest.raises(NotPossibleNow, match="a person has the keyboard"):
            await agent.side.send("wish", "hello")
        assert podium.taken() == []
        assert not await agent.side.has("wish")
        await keyboard.give("ann")
        await agent.side.send("wish", "hello")
        await retry_until(lambda: podium.taken() == ["hello"])


@pytest.mark.soak  # test_mirrored_pairs.py has one that is not
async def test_whoever_has_it_types_into_a_program_that_is_at_work(root: Path) -> None:
    async with on_stage(root) as podium:
        agent, keyboard = await up_with(podium, "stuck")
        turn = a_turn()
        asking = asyncio.create_task(agent.ask(turn))
        await retry_until(lambda: len(podium.taken()) == 1)
        await keyboard.take("ann", LONG_SECONDS)
        await podium.pair.send_keys("planner", "h", "i", who="ann")

        async def is_shown() -> bool:
            return any("hi" in line for line in await podium.pair.capture("planner"))

        await retry_until(is_shown)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.soak
async def test_question_is_not_reported_while_a_person_is_at_it(root: Path) -> None:
    async with on_stage(root, clock=SystemClock()) as podium:
        agent, keyboard = await up_with(podium, "asks", think_seconds=3.0)
        asking = asyncio.create_task(agent.ask(a_turn()))
        await retry_until(lambda: len(podium.taken()) == 1)
        await keyboard.take("ann", LONG_SECONDS)

        async def is_asked() -> bool:
            return (await podium.pair.states())[0].status == "asking"

        await retry_until(is_asked)
        done, _ = await asyncio.wait({asking}, timeout=1.0)
        assert not done, "she sees the question herself"
        await keyboard.give("ann")
        with pytest.raises(NeedsHuman, match="asks a question in its terminal"):
            await asking


@pytest.mark.soak  # the next test has its arithmetic
async def test_time_of_a_turn_is_paused_while_a_person_has_the_keyboard(root: Path) -> None:
    async with on_stage(root, clock=SystemClock()) as podium:
        agent, keyboard = await up_with(podium, "stuck")
        asking = asyncio.create_task(agent.ask(a_turn(seconds=1.5)))
        await retry_until(lambda: len(podium.taken()) == 1)
        await keyboard.take("ann", LONG_SECONDS)
        # One that ran out of time is interrupted for five seconds before that is told.
        done, _ = await asyncio.wait({asking}, timeout=9.0)
        assert not done, "it ran out of time, or was reminded of it, while a person was at it"
        assert len(podium.taken()) == 1
        await keyboard.give("ann")
        with pytest.raises(TimedOut, match="brought no plan"):
            await asking


def test_the_clocks_of_a_turn_are_put_on_by_as_long_as_people_had_the_keyboard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Turns are timed by the event loop, which no clock of a test can hold still.
    now = [100.0]
    monkeypatch.setattr("podium.agents.tui.exchange._now", lambda: now[0])
    time = TurnTime(a_turn(seconds=60.0, longest_seconds=100.0), held_seconds=5.0)
    now[0] = 130.0
    time.stand_still(5.0)
    assert time.ends_at == 160.0, "what was before it began counts for nothing"
    time.stand_still(25.0)
    time.stand_still(25.0)
    assert (time.ends_at, time.part_at(0.5), time.passed_seconds) == (180.0, 150.0, 10.0)
    time.begin_anew()
    now[0] = 170.0
    time.stand_still(125.0)
    assert time.ends_at == 230.0, "it began anew while a person had it"
    now[0] = 220.0
    time.begin_anew()
    assert time.ends_at == 280.0
    now[0] = 319.0
    time.begin_anew()
    assert time.ends_at == 320.0, "the longest time is put on as well"


async def test_time_that_a_person_had_it_unseen_is_left_out_too(root: Path) -> None:
    """Taken and returned before any clock of the turn was due."""
    clock = FixedClock()
    async with on_stage(root, clock=clock) as podium:
        _, keyboard = await up_with(podium)
        await keyboard.take("ann", LONG_SECONDS)
        clock.advance(7)
        assert (await keyboard.state()).held_seconds(clock.now()) == 7
        await keyboard.give("ann")
        clock.advance(3)
        await keyboard.take("bob", LONG_SECONDS)
        clock.advance(2)
        state = await keyboard.state()
        assert (state.takes, state.held_seconds(clock.now())) == (2, 9)


async def test_program_output_in_the_meantime_is_received(root: Path) -> None:
    async with on_stage(root) as podium:
        agent, keyboard = await up_with(podium, think_seconds=1.0)
        turn = a_turn()
        asking = asyncio.create_task(agent.ask(turn))
        await retry_until(lambda: len(podium.taken()) == 1)
        await keyboard.take("ann", LONG_SECONDS)
        assert message_in(await asking, turn) is not None
        assert (await keyboard.state()).hold is not None


async def test_of_two_people_one_has_it_and_the_other_is_shown_who(root: Path) -> None:
    async with on_stage(root) as podium:
        _, keyboard = await up_with(podium)
        takes = [keyboard.take(who, LONG_SECONDS) for who in ("ann", "bob")]
        won, lost = sorted(
            await asyncio.gather(*takes, return_exceptions=True),
            key=lambda item: isinstance(item, Exception),
        )
        assert isinstance(won, KeyboardHold)
        assert isinstance(lost, NotPossibleNow)
        assert f"{won.who!r} has the keyboard" in str(lost)
        other = "bob" if won.who == "ann" else "ann"
        with pytest.raises(NotPossibleNow, match="take it first"):
            await podium.pair.send_keys("planner", "x", who=other)
        with pytest.raises(NotPossibleNow, match="take it first"):
            await podium.pair.send_keys("planner", "x")
        with pytest.raises(NotPossibleNow):
            await keyboard.give(other)
        assert (await keyboard.state()).hold == won
        assert await keyboard.give() == won, "whoever may take it away names nobody"


async def test_it_returns_by_itself_when_its_time_is_over_and_that_is_reported_once(
    root: Path,
) -> None:
    clock = FixedClock()
    async with on_stage(root, clock=clock) as podium:
        agent, keyboard = await up_with(podium)
        hold = await keyboard.take("ann", 60.0)
        more = await keyboard.take("ann", 120.0)
        assert (more.since, (more.until - hold.until).total_seconds()) == (hold.since, 60.0)
        asking = asyncio.create_task(agent.ask(turn := a_turn()))
        await looked_for_a_while(podium)
        assert podium.taken() == []
        clock.advance(121)
        assert message_in(await asking, turn) is not None
        assert podium.lapses == [more]
        with pytest.raises(NotPossibleNow, match="do not have the keyboard"):
            await podium.pair.send_keys("planner", "x", who="ann")


@pytest.mark.soak
async def test_another_podium_finds_it_taken_after_the_first_was_killed(root: Path) -> None:
    async with on_stage(root) as podium:
        _, keyboard = await up_with(podium)
        hold = await keyboard.take("ann", LONG_SECONDS)
        await podium.pair.close()
        next_one = Podium(root)
        agent = next_one.seat("composer")
        turn = a_turn()
        asking = asyncio.create_task(agent.ask(turn))
        try:
            await looked_for_a_while(next_one)
            assert next_one.taken() == []
            (state,) = await next_one.pair.states()
            assert state.keyboard == hold
            await (await next_one.pair.keyboard("planner")).give("ann")
            assert message_in(await asking, turn) is not None
            assert len(next_one.taken()) == 1
        finally:
            asking.cancel()
            await asyncio.wait({asking})
            await next_one.pair.close()


async def test_a_message_that_is_being_handed_over_is_let_through_first(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("swallowing")
        await podium.pair.come_up()
        keyboard = await podium.pair.keyboard("planner")
        turn: Turn = a_turn()
        asking = asyncio.create_task(agent.ask(turn))

        async def is_pasted() -> bool:
            return (await agent.side.injector.ledger.read()).pasted == 1

        await retry_until(is_pasted)
        await keyboard.take("ann", LONG_SECONDS)
        entry = await agent.side.injector.ledger.read()
        assert (entry.pasted, entry.sent) == (1, 1)
        await keyboard.give("ann")
        assert message_in(await asking, turn) is not None
        assert len(podium.taken()) == 1
