"""Turns that are aborted at any moment: nothing they started lives on."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from podium.agents import AgentScript, ScriptedAgent
from podium.core.decisions import Effect
from podium.core.processes import ProcessSpec
from podium.core.turns import Turn
from podium.sandbox import LauncherSettings, ProcessLauncher
from tests.integration.contract.media import processes_in
from tests.integration.sandbox.door_harness import RealDoorHarness

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these look into /proc")

STUBBORN = [{"ignore_sigterm": True}, {"leave_child": True}, {"leave_child": True}, {"hang": True}]


def _agent(harness: RealDoorHarness) -> ScriptedAgent:
    script = AgentScript.model_validate({"turns": [{"role": "tester", "acts": STUBBORN}]})
    launcher = ProcessLauncher(LauncherSettings(grace_seconds=0.05, linger_seconds=0.01))
    return ScriptedAgent("player", script, launcher, harness.hook_door)


@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.soak)])
async def test_aborted_turns_leave_no_process_and_no_descriptor(count: int, tmp_path: Path) -> None:
    agent = _agent(RealDoorHarness(*[Effect.ALLOW] * 10))
    # The first start of all opens the line to where guards are forked, and that stays open.
    await ProcessLauncher().run(ProcessSpec(argv=("true",), cwd="/"))
    await _abort(agent, tmp_path, 0)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(count):
        await _abort(agent, tmp_path, number)
        assert processes_in(tmp_path) == {}
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("count", [10, pytest.param(50, marks=pytest.mark.soak)])
async def test_turns_that_are_aborted_together_leave_no_process(count: int, tmp_path: Path) -> None:
    agent = _agent(RealDoorHarness(*[Effect.ALLOW] * 10))
    turns = [asyncio.create_task(agent.ask(_turn(tmp_path, number))) for number in range(count)]
    await asyncio.wait(turns, timeout=0.2)
    for turn in turns:
        turn.cancel()
    ends = await asyncio.gather(*turns, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)
    assert processes_in(tmp_path) == {}


async def _abort(agent: ScriptedAgent, folder: Path, number: int) -> None:
    """Cancel a turn after a while that differs from time to time: before, in and after its start."""
    asking = asyncio.create_task(agent.ask(_turn(folder, number)))
    await asyncio.wait({asking}, timeout=(number % 30) * 0.005)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


def _turn(folder: Path, number: int) -> Turn:
    return Turn(
        run_id="run_1",
        step_key=f"ask#{number}",
        role="tester",
        prompt="go",
        workspace=str(folder),
    )
