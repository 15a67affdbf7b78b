"""A program on a terminal is asked like any other agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.testing.fake_tuis import happened
from tests.soaking import in_soak
from tests.unit.agents.tui.pair_harness import Podium, a_turn, message_in, on_stage

PRIMER = (
    "You are PLANNER. Answer by a block:\n"
    '[[POLI:MSG {"to":"EXECUTER","type":"plan","id":"<ID>"}]]\n<PLAN>\n…\n</PLAN>\n[[/POLI:MSG]]\n'
    "Now wait."
)
BODY = "1. look\n2. mend"


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["composer", in_soak("wrapping"), in_soak("unbracketed"), "echo"])
async def test_a_turn_goes_to_the_program_and_its_block_comes_back(root: Path, kind: str) -> None:
    async with on_stage(root) as podium:
        await check_round_trip(podium, kind)


@pytest.mark.soak
@pytest.mark.parametrize(
    "kind", ["alternate", "banner", "blinking", "ink", "resizing", "slow", "spinning", "swallowing"]
)
async def test_roundtrip_works_with_other_fake_programs(root: Path, kind: str) -> None:
    async with on_stage(root) as podium:
        await check_round_trip(podium, kind)


async def check_round_trip(podium: Podium, kind: str) -> None:
    agent = podium.seat(kind, primer=PRIMER)
    turn = a_turn()
    reply = await agent.ask(turn)
    found = message_in(reply, turn)
    assert found is not None
    assert found.body == BODY
    assert (reply.agent, reply.read_from) == ("zoo-planner", "screen")
    assert (reply.usage.turns, reply.usage.complete) == (1, False)
    assert len(podium.taken()) == 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", ["recap", in_soak("strays"), in_soak("twice"), "quoting"])
async def test_only_the_last_block_of_this_turn_counts(root: Path, way: str) -> None:
    async with on_stage(root) as podium:
        await check_way(podium, way)


@pytest.mark.soak
@pytest.mark.parametrize("way", ["partial", "malformed", "wordy", "status", "unfenced"])
async def test_the_same_for_other_ways_to_answer(root: Path, way: str) -> None:
    async with on_stage(root) as podium:
        await check_way(podium, way)


async def check_way(podium: Podium, way: str) -> None:
    agent = podium.seat("composer", "plain", way, primer=PRIMER, bodies=("first", "second"))
    for number, body in ((1, "first"), (2, "second")):
        turn = a_turn(number)
        found = message_in(await agent.ask(turn), turn)
        assert found is not None
        assert found.body == body


async def test_both_sides_lie_side_by_side_and_answer_at_their_own_addresses(
    root: Path,
) -> None:
    async with on_stage(root) as podium:
        planner = podium.seat("composer")
        executer = podium.seat("composer", name="executer", bodies=("mended",))
        turn = a_turn(sender="EXECUTER")
        found = message_in(await executer.ask(turn), turn)
        assert found is not None
        assert (found.to, found.body) == ("PLANNER", "mended")
        await planner.ask(a_turn(2))
        assert [state.pane for state in await podium.pair.states()] == ["%0", "%1"]


async def test_long_lines_and_characters_of_all_kinds_come_back_from_the_screen(root: Path) -> None:
    body = f"ünïcödé 漢字 🎭\n{'a long line ' * 40}end\n    indented\n\n\tlast `$(id)`".expandtabs()
    async with on_stage(root) as podium:
        agent = podium.seat("composer", bodies=(body,))
        turn = a_turn()
        found = message_in(await agent.ask(turn), turn)
        assert found is not None
        assert found.body == body


async def test_a_block_that_scrolled_off_is_found(root: Path) -> None:
    body = "\n".join(f"step {number}" for number in range(300))
    async with on_stage(root) as podium:
        agent = podium.seat("composer", bodies=(body,))
        turn = a_turn()
        found = message_in(await agent.ask(turn), turn)
        assert found is not None
        assert found.body == body


async def test_the_door_is_open_for_its_hook_during_the_turn_alone(root: Path) -> None:
    async with on_stage(root) as podium:
        podium.doors.door.hook_env = {"PODIUM_DOOR": "there", "PODIUM_DOOR_TOKEN": "word"}
        agent = podium.seat("composer", "status")
        file = agent.side.folders.door_file
        seen: list[str] = []
        podium.doors.door.report_progress = lambda *_: seen.append(file.read_text())  # type: ignore[method-assign]
        await agent.ask(a_turn())
        assert [json.loads(text) for text in seen] == [podium.doors.door.hook_env] * 2
        assert podium.doors.door.expected == ["*"]
        assert (file.exists(), podium.doors.opened) == (False, 0)


async def test_what_blocks_it_is_an_answer(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer", "blocker")
        turn = a_turn()
        found = message_in(await agent.ask(turn), turn)
        assert found is not None
        assert (found.type, found.body) == ("blocker", "I need a password.")


async def test_words_are_an_answer_where_no_block_is_awaited(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("composer")
        turn = a_turn().model_copy(update={"awaits": None, "prompt": "Are you there?"})
        assert "Understood." in (await agent.ask(turn)).text


async def test_activity_of_every_side_can_be_seen_by_another_podium(root: Path) -> None:
    async with on_stage(root) as podium:
        await podium.seat("composer").ask(a_turn())
        other = Podium(root)
        other.seat("composer")
        (state,) = await other.pair.states()
        assert (state.pane, state.status, state.sent) == ("%0", "ready", 1)
        assert state.pid > 1
        assert state.active_at is not None
        assert any("> " in line or line == ">" for line in await other.pair.capture("planner"))
        await other.pair.close()


async def test_a_pair_that_is_not_up_is_shown_as_such_and_nothing_is_started(root: Path) -> None:
    podium = Podium(root)
    podium.seat("composer")
    (state,) = await podium.pair.states()
    assert (state.pane, state.status) == ("", None)
    assert not (root / "s").exists()
    await podium.pair.close()


async def test_its_private_files_are_private_and_gone_with_the_pair(root: Path) -> None:
    async with on_stage(root) as podium:
        agent = podium.seat("unbracketed")
        await agent.ask(a_turn())
        files = [path for path in agent.side.folders.folder.rglob("*") if path.is_file()]
        assert {path.name for path in files} >= {"side.json"}
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert not (root / "own").exists()
    assert happened(podium.record())
