"""A real program on a terminal behind the port of all agents, with its tools before Podium's own door."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import podium
from podium.agents.tui import TerminalPair, TerminalSettings, TuiAgent, TuiDeps
from podium.agents.tui.adapter import Adapter
from podium.core.decisions import Call, Decision, Effect, GateContext
from podium.core.processes import Confinement, Mount
from podium.core.turns import Reply, Turn, TurnLimits
from podium.sandbox import (
    HookServer,
    HookServerSettings,
    LauncherSettings,
    ProcessLauncher,
    end_left_server,
    hook_command,
)
from podium.testing import (
    FakeConfinementProvider,
    MemoryJournal,
    MemoryTranscripts,
    ScriptedGate,
    decision,
)
from podium.testing.modelserver import ModelServer, Script
from podium.tools import builtin_tools, own_tools
from tests.integration.agents.tui.live import KEY, Options
from tests.unit.tools.toolbox_harness import Harness, make_harness

SOURCES = Path(podium.__file__).parents[1]


@dataclass
class TuiHarness:
    """A program that is asked, and what was made of its wishes."""

    agent: TuiAgent
    pair: TerminalPair
    server: ModelServer
    tools: Harness
    transcripts: MemoryTranscripts

    def turn(self, prompt: str, **changes: Any) -> Turn:
        given: dict[str, Any] = {
            "run_id": "run_1",
            "step_key": f"ask {prompt}",
            "role": "planner",
            "prompt": prompt,
            "workspace": str(self.tools.root),
            "limits": TurnLimits(seconds=120.0),
            **changes,
        }
        return Turn(**given)

    async def ask(self, prompt: str, **changes: Any) -> Reply:
        return await self.agent.ask(self.turn(prompt, **changes))


@asynccontextmanager
async def tui_harness(
    root: Path,
    adapter: Adapter,
    options: Options,
    steps: Mapping[str, Any],
    *,
    denied: str = "forbidden",
    primer: str = "",
    confined: bool = False,
) -> AsyncIterator[TuiHarness]:
    """`denied` is a word that the gate lets nothing pass with. `confined`: the kernel holds the program."""

    def judge(call: Call, context: GateContext) -> Decision:
        if denied in str(call.arguments):
            return decision(Effect.DENY, "the rules of the house")
        return decision(Effect.ALLOW)

    tools = make_harness(root, (*builtin_tools(), *own_tools()), gate=ScriptedGate(judge))
    transcripts, doors = MemoryTranscripts(), root / "doors"
    doors.mkdir(mode=0o700)
    script = steps if "rules" in steps else Script.by_marker(steps)
    async with ModelServer(script, key=KEY) as server:
        own = options(server.url)
        deps = TuiDeps(
            launcher=ProcessLauncher(
                LauncherSettings(grace_seconds=1.0), resolve_secret={"KEY": KEY}.__getitem__
            ),
            confinement_provider=FakeConfinementProvider(
                _fence(tools.root, own.command) if confined else None
            ),
            doors=HookServer(
                tools.door,
                tools.toolbox,
                MemoryJournal(tools.store),
                HookServerSettings(folder=str(doors)),
            ),
            door_folder=doors,
            transcripts=transcripts,
            clock=tools.clock,
            hook_command=hook_command(),
            user_home=root / "person",
            environ={},
            end_left=end_left_server,
        )
        pair = TerminalPair(deps, TerminalSettings(socket=root / "s", folder=root / "own"))
        agent = pair.side("planner", adapter, own, tools.root, primer)
        try:
            yield TuiHarness(agent, pair, server, tools, transcripts)
        finally:
            await pair.depart()


def _fence(workspace: Path, command: tuple[str, ...]) -> Confinement:
    """The workspace, and of the rest what the program and its hook are run with."""
    programs = (str(Path(word).parent) for word in command if word.startswith("/"))
    seen = dict.fromkeys((sys.base_prefix, sys.prefix, str(SOURCES), *programs))
    return Confinement(
        kind="kernel",
        network="model-only",
        mounts=(
            *(Mount(source=path, target=path) for path in seen),
            Mount(source=str(workspace), target=str(workspace), writable=True),
        ),
    )
