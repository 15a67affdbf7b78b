"""Failures of a program on a terminal: repaired once, or reported with what to do."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from podium.agents.tui import Injector
from podium.agents.tui.adapter import Status
from podium.agents.tui.exchange import TurnTime
from podium.core.errors import AgentLost, NeedsHuman, NotPossibleNow, TimedOut
from podium.testing import retry_until
from podium.testing.fake_tuis import happened
from tests.unit.agents.tui.pair_harness import (
    Podium,
    a_turn,
    kill_program,
    message_in,
    on_stage,
    quick,
)


@pytest.mark.soak
async def test_program_that_dies_in_mid_block_is_restarted_and_reported(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "crash")
        turn = a_turn()
        reply = await agent.ask(turn)
        assert message_in(reply, turn) is not None
        (warning,) = reply.warnings
        assert "'planner' (generic) ended and was restarted; its last output: " in warning
        assert podium.deaths() == 1
        assert [words[:4] for words in podium.taken()] == ["Mend", "Mend"]


async def test_a_program_that_dies_again_is_lost_with_its_last_words(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("crashing")
        with pytest.raises(AgentLost, match="ended again after a restart") as error:
            await agent.ask(a_turn())
        assert "fatal: out of memory" in str(error.value)


async def test_unstartable_program_is_reported_with_its_output(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("nothing-of-this-name")
        with pytest.raises(AgentLost, match=r"did not stay running: .*unknown kind"):
            await agent.ask(a_turn())


@pytest.mark.soak
async def test_a_program_that_died_between_two_turns_is_started_again(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer")
        await agent.ask(a_turn(1))
        await kill_program(podium)
        turn = a_turn(2)
        assert message_in(await agent.ask(turn), turn) is not None


async def test_a_server_that_is_lost_takes_nothing_along_but_its_programs(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", primer="You are PLANNER.")
        await agent.ask(a_turn(1))
        await agent._control.run("kill-server")
        turn = a_turn(2)
        assert message_in(await agent.ask(turn), turn) is not None
        assert [words[:7] for words in podium.taken()] == ["You are", "Mend th"] * 2


async def test_what_it_asks_at_its_start_is_put_before_a_person_whose_answer_it_goes_on_with(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("modal")
        with pytest.raises(
            NeedsHuman, match=r"asks a question in its terminal: Do you trust this folder"
        ):
            await agent.ask(a_turn())
        (state,) = await podium.pair.states()
        assert (state.status, state.question) == ("asking", "Do you trust this folder? (y/n)")
        await podium.pair.send_keys("planner", "y")
        await retry_until(lambda: _is(podium, "ready"))
        turn = a_turn()
        assert message_in(await agent.ask(turn), turn) is not None


async def test_what_it_asks_in_the_middle_of_a_turn_does_not_send_the_turn_again(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "asks")
        turn = a_turn()
        with pytest.raises(NeedsHuman, match="May I use the network"):
            await agent.ask(turn)
        await podium.pair.send_keys("planner", "y")
        await retry_until(lambda: _is(podium, "ready"))
        assert message_in(await agent.ask(turn), turn) is not None
        assert len(podium.taken()) == 1


async def test_one_that_forgot_its_block_is_reminded_once(root: Path) -> None:
    async with on_stage(root, timings=quick(nudge_at=0.02)) as podium:
        agent = podium.seat("composer", "forgets")
        turn = a_turn(seconds=60.0)
        assert message_in(await agent.ask(turn), turn) is not None
        assert len(podium.taken()) == 2
        assert podium.taken()[1] == "If finished, emit the tagged block now."
        assert ("note", "reminded planner to answer") in podium.doors.door.progress


@pytest.mark.soak
async def test_one_that_is_busy_is_not_spoken_to_and_interrupted_when_its_time_is_over(
    root: Path,
) -> None:
    async with on_stage(root, timings=quick(nudge_at=0.1)) as podium:
        agent = podium.seat("composer", "stuck", "plain")
        with pytest.raises(TimedOut) as error:
            await agent.ask(a_turn(seconds=3.0))
        words = r"'planner' \(generic\) brought no plan block of task T1 within \d+ s and is busy; .*retry"
        assert re.match(words, str(error.value))
        assert len(podium.taken()) == 1
        await retry_until(lambda: "interrupted" in _kinds(podium))
        turn = a_turn(2)
        assert message_in(await agent.ask(turn), turn) is not None


@pytest.mark.soak
async def test_a_turn_whose_time_was_over_is_sent_again_when_it_is_asked_again(root: Path) -> None:
    async with on_stage(root, timings=quick(nudge_at=2.0)) as podium:
        agent = podium.seat("composer", "silent")
        for _ in range(2):
            with pytest.raises(TimedOut, match="brought no plan block"):
                await agent.ask(a_turn(seconds=1.0))
        assert len(podium.taken()) == 2


@pytest.mark.soak
async def test_progress_restarts_the_time_and_is_reported(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "status", statuses=4, think_seconds=4.0)
        turn = a_turn(seconds=15.0)
        assert message_in(await agent.ask(turn), turn) is not None
        assert podium.doors.door.progress == [
            ("note", f"step {number} is done") for number in (1, 2, 3, 4)
        ]


async def test_progress_restarts_the_time_of_a_turn_up_to_its_longest() -> None:
    time = TurnTime(a_turn(seconds=100.0, longest_seconds=101.0))
    first = time.ends_at
    await asyncio.sleep(0.01)
    time.begin_anew()
    assert first < time.ends_at < first + 1.0
    await asyncio.sleep(0.01)
    late = TurnTime(a_turn(seconds=100.0, longest_seconds=100.0))
    last = late.ends_at
    await asyncio.sleep(0.01)
    late.begin_anew()
    assert late.ends_at == last


@pytest.mark.soak
async def test_progress_does_not_go_on_for_ever(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "status", statuses=1000, think_seconds=0.3)
        with pytest.raises(TimedOut):
            await agent.ask(a_turn(seconds=3.0, longest_seconds=4.0))


@pytest.mark.soak
async def test_a_terminal_that_is_resized_in_mid_block_brings_the_block_whole(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "resize", bodies=("a long line " * 20,))
        turn = a_turn()
        asking = asyncio.ensure_future(agent.ask(turn))
        await retry_until(lambda: "half" in _kinds(podium))
        await podium.pair.resize(70, 25)
        found = message_in(await asking, turn)
        assert found is not None
        assert found.body == ("a long line " * 20).rstrip()


async def test_cancelling_interrupts_the_program_which_takes_the_next_turn(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "stuck", "plain")
        asking = asyncio.ensure_future(agent.ask(a_turn()))
        await retry_until(podium.taken)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert "interrupted" in _kinds(podium)
        turn = a_turn(2)
        assert message_in(await agent.ask(turn), turn) is not None
        assert podium.doors.opened == 0


@pytest.mark.soak
async def test_a_message_that_is_cancelled_on_its_way_leaves_nothing_in_the_input(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("swallowing")
        await podium.pair.come_up()
        asking = asyncio.ensure_future(agent.ask(a_turn()))
        await retry_until(lambda: _is_pasted(agent.side.injector))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await agent.side.injector.ledger.read()).is_settled
        turn = a_turn(2)
        assert message_in(await agent.ask(turn), turn) is not None


@pytest.mark.soak
async def test_a_person_speaks_to_a_program_that_rests_and_to_no_other(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "plain", "stuck")
        await agent.ask(a_turn(1))
        other = Podium(root)
        other.seat("composer")
        await other.pair.nudge("planner", "How far are you?")
        await retry_until(lambda: "How far are you?" in podium.taken())
        asking = asyncio.ensure_future(agent.ask(a_turn(2)))
        await retry_until(lambda: len(podium.taken()) == 3)
        await retry_until(lambda: _is(other, "busy"))
        with pytest.raises(
            NotPossibleNow, match="is busy; it takes messages only while it is idle"
        ):
            await other.pair.nudge("planner", "And now?")
        assert await other.pair.interrupt("planner")
        await other.pair.close()
        asking.cancel()
        await asyncio.wait({asking})
        assert "And now?" not in podium.taken()


async def _is_pasted(injector: Injector) -> bool:
    return (await injector.ledger.read()).pasted == 1


async def _is(podium: Podium, status: Status) -> bool:
    return (await podium.pair.states())[0].status == status


def _kinds(podium: Podium) -> list[str]:
    return [event.what for event in happened(podium.record())]
