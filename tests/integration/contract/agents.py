"""Agents the contract suite runs on. A new kind is one more stage in a list."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from podium.agents import AgentScript, ScriptedAgent
from podium.core.decisions import Effect
from podium.core.errors import AgentLost
from podium.core.turns import Reply, Turn, TurnLimits
from podium.ports import Agent
from podium.sandbox import LauncherSettings, ProcessLauncher
from podium.testing import FakeAgent
from tests.integration.sandbox.door_harness import RealDoorHarness, say

NAME = "player"


class Stage(Protocol):
    """Makes agents of one kind, each with one part to play in the role `tester`."""

    def saying(self, words: str) -> Agent: ...
    def calling(self, tool: str, **arguments: Any) -> Agent:
        """It asks Podium to use a tool, and answers."""
        ...

    def hanging(self) -> Agent:
        """It uses the tool `echo`, starts a child if it can, and never answers."""
        ...

    def lost(self) -> Agent:
        """It goes away without an answer."""
        ...


class ProcessStage(Stage, Protocol):
    """Agents that are processes."""

    def showing_environment(self) -> Agent:
        """It answers with its variables, `NAME=value` a line."""
        ...


class ScriptedStage:
    def __init__(self, harness: RealDoorHarness) -> None:
        self._harness = harness

    def saying(self, words: str) -> Agent:
        return self._playing({"say": words})

    def calling(self, tool: str, **arguments: Any) -> Agent:
        return self._playing({"call": tool, "with": arguments}, {"say": "done"})

    def hanging(self) -> Agent:
        stubborn = ({"ignore_sigterm": True}, {"leave_child": True})
        return self._playing(*stubborn, {"call": "echo"}, {"hang": True})

    def lost(self) -> Agent:
        return self._playing({"say": "about to"}, {"crash": 3})

    def showing_environment(self) -> Agent:
        return self._playing({"dump_environment": True})

    def _playing(self, *acts: dict[str, Any]) -> Agent:
        script = AgentScript.model_validate({"turns": [{"role": "tester", "acts": acts}]})
        launcher = ProcessLauncher(LauncherSettings(grace_seconds=0.2, linger_seconds=0.01))
        return ScriptedAgent(NAME, script, launcher, self._harness.hook_door)


class FakeStage:
    def __init__(self, harness: RealDoorHarness) -> None:
        self._harness = harness

    def saying(self, words: str) -> Agent:
        return FakeAgent([words], name=NAME)

    def calling(self, tool: str, **arguments: Any) -> Agent:
        async def call(turn: Turn) -> Reply:
            async with self._harness.hook_door.open(turn, agent=NAME) as door:
                await say(door, op="perform", tool=tool, arguments=arguments)
            return Reply(text="done", waiting_approvals=door.waiting_approvals)

        return FakeAgent([call], name=NAME)

    def hanging(self) -> Agent:
        async def hang(turn: Turn) -> Reply:
            async with self._harness.hook_door.open(turn, agent=NAME) as door:
                await say(door, op="perform", tool="echo")
                await asyncio.Event().wait()
            raise AssertionError("it waits for ever")

        return FakeAgent([hang], name=NAME)

    def lost(self) -> Agent:
        return FakeAgent([AgentLost("it went away")], name=NAME)


PROCESS_STAGES: list[Callable[[RealDoorHarness], ProcessStage]] = [ScriptedStage]
STAGES: list[Callable[[RealDoorHarness], Stage]] = [*PROCESS_STAGES, FakeStage]


def harness_that(effect: Effect) -> RealDoorHarness:
    """The hook door on the real tool door, with a gate that says one thing."""
    return RealDoorHarness(*[effect] * 10)


def turn_in(folder: Path, *, seconds: float = 30.0, tools: tuple[str, ...] | None = None) -> Turn:
    return Turn(
        run_id="run_1",
        step_key="ask#0",
        role="tester",
        prompt="go",
        workspace=str(folder),
        limits=TurnLimits(seconds=seconds),
        allowed_tools=tools,
    )


def processes_in(folder: Path) -> set[int]:
    """Processes that work in this folder."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "cwd") == str(folder):
                    found.add(int(entry.name))
            except OSError:
                continue
    return found
