"""Transcripts that a program writes: read exactly to the byte, and evidence of how far a turn came when its program died."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.agents.tui.exchange import GO_ON
from podium.agents.tui.reply_reader import error_of
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    ContextOverflow,
    PodiumError,
    RateLimited,
)
from podium.testing import retry_until
from tests.unit.agents.tui.pair_harness import Podium, a_turn, kill_program, message_in, on_stage

HARD = (
    "\tünïcödé 漢字 🎭 \\ `$(id)` **bold** <b>\n" + "x" * 5000 + "\n\n    four spaces   \n> quoted"
)


async def test_an_answer_is_read_to_the_byte_where_it_is_written_down(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("alternate", writes=True, bodies=(HARD,), primer="You are PLANNER.")
        assert not agent.reads_screen
        turn = a_turn()
        reply = await agent.ask(turn)
        found = message_in(reply, turn)
        assert found is not None
        assert found.body == HARD
        assert (reply.read_from, reply.session) == ("transcript", "zoo")
        kinds = [json.loads(line)["kind"] for line in podium.transcripts.transcripts[-1].lines]
        assert kinds == ["prompt", "words", "end"]


async def test_words_without_a_block_end_the_turn_too_since_its_end_is_written_down(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "forgets", writes=True)
        assert (await agent.ask(a_turn())).text == "I think I am done here."


@pytest.mark.soak
async def test_a_turn_without_a_word_is_no_answer(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "silent", writes=True)
        for times in (1, 2):
            with pytest.raises(AgentLost, match="ended its turn without a reply"):
                await agent.ask(a_turn())
            assert len(podium.taken()) == times  # asked again, it is sent again


async def test_written_progress_is_reported(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "status", writes=True)
        await agent.ask(a_turn())
        notes = [text for kind, text in podium.doors.door.progress if kind == "note"]
        assert notes == ["step 1 is done", "step 2 is done"]


@pytest.mark.soak
async def test_program_that_died_at_work_is_asked_to_continue_its_conversation(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "stuck", "plain", writes=True, primer="You are PLANNER.")
        asking = asyncio.ensure_future(agent.ask(a_turn()))
        await retry_until(lambda: len(podium.taken()) == 2)
        await kill_program(podium)
        await retry_until(lambda: GO_ON[:40] in podium.taken()[-1])
        reply = await asking
        assert reply.text == "Understood."  # a fake TUI remembers no task by itself
        assert [words[:4] for words in podium.taken()] == ["You ", "Mend", "You "]
        assert "ended and was restarted" in reply.warnings[0]


async def test_an_answer_that_was_written_before_its_program_died_counts(root: Path) -> None:
    async with on_stage(root) as podium:
        turn = a_turn()
        await podium.seat("composer", writes=True).ask(turn)
        await kill_program(podium)
        other = Podium(root)
        again = await other.seat("composer", writes=True).ask(turn)
        assert message_in(again, turn) is not None
        assert len(podium.taken()) == 1
        await other.pair.close()


async def test_a_message_that_its_dead_program_never_took_is_sent_again(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("swallowing", writes=True)
        await podium.pair.come_up()
        asking = asyncio.ensure_future(agent.ask(a_turn()))

        async def is_pasted() -> bool:
            return (await agent.side.injector.ledger.read()).pasted == 1

        await retry_until(is_pasted)
        await kill_program(podium)
        assert message_in(await asking, a_turn()) is not None
        assert len(podium.taken()) == 1


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("API Error: 429 rate limit; try again in 2 minutes", RateLimited),
        ("Invalid API key · Please run /login", AgentNotLoggedIn),
        ("Prompt is too long", ContextOverflow),
        ("API Error: 500 overloaded", AgentLost),
        ("", AgentLost),
    ],
)
def test_what_a_bad_end_says_becomes_an_error_of_the_tree(
    words: str, kind: type[PodiumError]
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    trouble = error_of("'planner' (claude)", words, now)
    assert type(trouble) is kind
    assert words in str(trouble)
    if isinstance(trouble, RateLimited):
        assert trouble.retry_at == now + timedelta(minutes=2)
