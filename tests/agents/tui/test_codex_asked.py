"""Codex on a terminal as an agent: asked by the port, with its tools before Podium's own door."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podium.agents.kit import AgentOptions
from podium.agents.tui import TerminalSettings
from podium.agents.tui.agent import TuiAgent
from podium.agents.tui.codex import CodexTui
from podium.agents.tui.kit import TuiKit
from podium.agents.tui.pair import TerminalPair
from podium.domain.asking import Reply, Turn, TurnLimits
from podium.domain.gating import Call, Decision, Effect, GateContext
from podium.sandbox import (
    HookDoor,
    HookDoorSettings,
    LauncherSettings,
    ProcessLauncher,
    end_left_server,
    hook_command,
)
from podium.testing import FakeEnclosures, MemoryJournal, MemoryTranscripts, ScriptedGate, decision
from podium.testing.modelserver import ModelServer, Script
from podium.tools import builtin_tools, own_tools
from tests.agents import clis
from tests.tools.rig import Rig, make_rig

KEY = "sk-loopback-0123456789abcdefghij"


@dataclass
class Desk:
    """A codex that is asked, and what was made of its wishes."""

    agent: TuiAgent
    server: ModelServer
    tools: Rig

    async def ask(self, prompt: str, **changes: Any) -> Reply:
        turn = Turn(
            run_id="run_1",
            step_key=f"ask {prompt}",
            role="executer",
            prompt=prompt,
            workspace=str(self.tools.root),
            limits=TurnLimits(seconds=120.0),
            **changes,
        )
        return await self.agent.ask(turn)


@asynccontextmanager
async def at_desk(root: Path, steps: Mapping[str, Any], denied: str) -> AsyncIterator[Desk]:
    def judge(call: Call, context: GateContext) -> Decision:
        if denied in str(call.arguments):
            return decision(Effect.DENY, "the rules of the house")
        return decision(Effect.ALLOW)

    tools = make_rig(root, (*builtin_tools(), *own_tools()), gate=ScriptedGate(judge))
    async with ModelServer(Script.by_marker(steps), key=KEY) as server:
        kit = TuiKit(
            launcher=ProcessLauncher(
                LauncherSettings(grace_seconds=1.0), resolve_secret={"OPENAI": KEY}.__getitem__
            ),
            enclosures=FakeEnclosures(),
            doors=HookDoor(
                tools.door, tools.toolbox, MemoryJournal(tools.store), HookDoorSettings()
            ),
            transcripts=MemoryTranscripts(),
            clock=tools.clock,
            hook_command=hook_command(),
            user_home=root / "person",
            environ={},
            end_left=end_left_server,
        )
        pair = TerminalPair(kit, TerminalSettings(socket=root / "s", folder=root / "own"))
        options = AgentOptions(
            name="codex",
            model="gpt-5.5",
            base_url=server.url,
            command=(clis.codex(),),
            env={"OPENAI_API_KEY": "secret://OPENAI"},
            options={"sandbox": "danger-full-access"},
        )
        agent = pair.side(
            "executer", CodexTui(), options, tools.root, "You are EXECUTER. SCRIPT:hi"
        )
        try:
            yield Desk(agent, server, tools)
        finally:
            await pair.depart()


@pytest.mark.soak
async def test_what_it_does_is_judged_and_receipted_like_any_other_agents_work(root: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"
    steps = {
        "hi": ["ready"],
        "work": [
            {"run": "echo yes > allowed.txt"},
            {"run": "touch forbidden.txt"},
            {"run": "false"},
            {"custom_tool": {"name": "apply_patch", "input": patch}},
            "all done",
        ],
    }
    async with at_desk(root, steps, "forbidden") as desk:
        reply = await desk.ask("SCRIPT:work do it")

        assert (reply.text, reply.read_from) == ("all done", "transcript")
        assert reply.session
        assert (desk.tools.root / "allowed.txt").exists()
        assert (desk.tools.root / "new.txt").exists()
        assert not (desk.tools.root / "forbidden.txt").exists()
        told = [(event.type, getattr(event, "tool", "")) for event in await desk.tools.events()]
        assert sorted(told) == [
            ("tool_completed", "run_command"),
            ("tool_completed", "write_file"),
            ("tool_failed", "run_command"),
            ("tool_refused", "run_command"),
            ("tool_requested", "run_command"),
            ("tool_requested", "run_command"),
            ("tool_requested", "write_file"),
        ]


@pytest.mark.soak
async def test_a_second_turn_is_of_the_same_conversation(root: Path) -> None:
    async with at_desk(root, {"hi": ["ready"], "one": ["1"], "two": ["2"]}, "nothing") as desk:
        first = await desk.ask("SCRIPT:one first")
        second = await desk.ask("SCRIPT:two second")

        assert (first.text, second.text) == ("1", "2")
        assert first.session == second.session
        asked = [str(seen.body) for seen in desk.server.requests]
        assert any("SCRIPT:one first" in each and "SCRIPT:two second" in each for each in asked)
