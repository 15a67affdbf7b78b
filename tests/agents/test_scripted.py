"""The scripted agent: a real process, asked like any headless CLI."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from podium.agents import AgentScript, ScriptedAgent
from podium.domain.asking import Turn, TurnLimits
from podium.domain.errors import AgentLost, BadInput, TimedOut
from podium.sandbox import ProcessLauncher
from podium.testing import FakeHookDoors, retry_until


def agent(*acts: dict[str, Any], **turn: Any) -> ScriptedAgent:
    script = AgentScript.model_validate({"turns": [{"role": "tester", "acts": acts, **turn}]})
    return ScriptedAgent("player", script, ProcessLauncher(), FakeHookDoors())


def turn(folder: Path, *, seconds: float = 20.0, role: str = "tester", prompt: str = "go") -> Turn:
    limits = TurnLimits(seconds=seconds)
    return Turn(
        run_id="run_1",
        step_key="s",
        role=role,
        prompt=prompt,
        workspace=str(folder),
        limits=limits,
    )


async def test_it_says_what_the_script_says(tmp_path: Path) -> None:
    reply = await agent({"say": "one"}, {"say": "two"}).ask(turn(tmp_path))
    assert (reply.text, reply.agent, reply.session) == ("one\ntwo", "player", None)


async def test_its_last_words_replace_what_it_said_on_the_way(tmp_path: Path) -> None:
    reply = await agent({"say": "one"}, reply="the end").ask(turn(tmp_path))
    assert reply.text == "the end"


async def test_it_sees_an_allow_listed_environment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "not-for-agents-123456")
    reply = await agent({"dump_environment": True}).ask(turn(tmp_path))
    names = {line.partition("=")[0] for line in reply.text.splitlines()}
    assert "PATH" in names
    assert "MY_API_TOKEN" not in names
    assert "not-for-agents-123456" not in reply.text


async def test_a_crash_is_an_agent_that_was_lost(tmp_path: Path) -> None:
    with pytest.raises(AgentLost, match="exit 3"):
        await agent({"say": "about to"}, {"crash": 3}).ask(turn(tmp_path))


async def test_an_exit_without_a_readable_answer_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(AgentLost, match="no answer that can be read"):
        await agent({"lie": True}).ask(turn(tmp_path))


async def test_a_hang_ends_with_the_turns_seconds(tmp_path: Path) -> None:
    with pytest.raises(TimedOut, match="player"):
        await agent({"hang": True}).ask(turn(tmp_path, seconds=0.3))


async def test_a_flood_before_the_answer_does_not_hide_it_when_it_fits(tmp_path: Path) -> None:
    reply = await agent({"flood_bytes": 1_000_000}, {"say": "still here"}).ask(turn(tmp_path))
    assert reply.text == "still here"


async def test_a_cancelled_turn_leaves_no_process_behind(tmp_path: Path) -> None:
    stubborn = agent({"ignore_sigterm": True}, {"leave_child": True}, {"hang": True})
    before = _sleepers()
    asking = asyncio.create_task(stubborn.ask(turn(tmp_path, seconds=60)))
    await retry_until(lambda: _sleepers() - before)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert not _sleepers() - before


async def test_a_role_without_a_turn_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'auditor'.*tester"):
        await agent({"say": "x"}).ask(turn(tmp_path, role="auditor"))


async def test_the_first_turn_whose_pattern_is_in_the_prompt_is_played(tmp_path: Path) -> None:
    script = AgentScript.model_validate(
        {
            "turns": [
                {"role": "tester", "when": "^fix", "reply": "fixing"},
                {"role": "tester", "reply": "looking"},
            ]
        }
    )
    player = ScriptedAgent("player", script, ProcessLauncher(), FakeHookDoors())
    assert (await player.ask(turn(tmp_path, prompt="fix it"))).text == "fixing"
    assert (await player.ask(turn(tmp_path, prompt="please fix it"))).text == "looking"


@pytest.mark.parametrize(
    "act", [{}, {"say": "x", "call": "y"}, {"say": "x", "with": {"a": 1}}, {"dance": True}]
)
def test_an_act_that_is_not_exactly_one_thing_is_refused(act: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"exactly one|goes with|Extra inputs"):
        AgentScript.model_validate({"turns": [{"role": "r", "acts": [act]}]})


def _sleepers() -> set[int]:
    """Processes that are the child a scripted agent leaves behind."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line == b"sleep\x003600\x00" and os.stat(entry).st_uid == os.getuid():
                found.add(int(entry.name))
    return found
