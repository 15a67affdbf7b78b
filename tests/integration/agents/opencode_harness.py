"""The real opencode between a loopback model and Podium's own tool door."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.opencode import OpencodeCliAgent
from podium.core.decisions import Call, Decision, Effect, GateContext
from podium.core.events import EventBody, ToolCompleted, ToolFailed, ToolRefused, ToolRequested
from podium.core.turns import Reply, Turn
from podium.platform.system_clock import SystemClock
from podium.sandbox import HookServer, LauncherSettings, ProcessLauncher, hook_command
from podium.testing import (
    FakeConfinementProvider,
    MemoryJournal,
    MemoryTranscripts,
    ScriptedGate,
    decision,
)
from podium.testing.modelserver import ModelServer, Script
from podium.tools import builtin_tools, own_tools
from tests.integration.agents import clis
from tests.integration.agents.claude_harness import a_repository, git
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness

KEY = SECRET
MODEL = "scripted-model"

Steps = Mapping[str, Sequence[Any]]


@dataclass
class OpencodeHarness:
    """The working objects of one test."""

    agent: OpencodeCliAgent
    server: ModelServer
    tools: Harness
    transcripts: MemoryTranscripts
    deps: AgentDeps

    @property
    def workspace(self) -> Path:
        return self.tools.root

    async def ask(self, script: str, **changes: Any) -> Reply:
        given: dict[str, Any] = {
            "run_id": "run_1",
            "step_key": "work#0",
            "role": "developer",
            "prompt": f"SCRIPT:{script} do it",
            "workspace": str(self.workspace),
            **changes,
        }
        return await self.agent.ask(Turn(**given))

    async def happened(self) -> list[tuple[type[EventBody], str]]:
        """Return the outcome of its calls: the kinds of the events, and the tools by their registered names."""
        return [
            (type(event), event.tool)
            for event in await self.tools.events()
            if isinstance(event, ToolRequested | ToolCompleted | ToolFailed | ToolRefused)
        ]

    def model_messages(self) -> str:
        """All that the model was sent, as one text."""
        return repr([seen.body for seen in self.server.requests])

    def git(self, *words: str) -> str:
        return git(self.workspace, *words)


@asynccontextmanager
async def opencode_harness(
    tmp_path: Path,
    steps: Steps,
    *,
    denies: Sequence[str] = (),
    asks: Sequence[str] = (),
    command: tuple[str, ...] | None = None,
    hook: tuple[str, ...] | None = None,
    **options: Any,
) -> AsyncIterator[OpencodeHarness]:
    """`denies` and `asks` are the tools, by their registered names, that the gate does not allow."""

    def judge(call: Call, context: GateContext) -> Decision:
        if call.tool in denies:
            return decision(Effect.DENY, "the rules of the house")
        return decision(Effect.ASK if call.tool in asks else Effect.ALLOW)

    program = command or (clis.opencode(),)
    tools = make_harness(tmp_path, (*builtin_tools(), *own_tools()), gate=ScriptedGate(judge))
    a_repository(tools.root)
    kept = MemoryTranscripts()
    async with ModelServer(Script.by_marker(steps), key=KEY) as server:
        deps = AgentDeps(
            confinement_provider=FakeConfinementProvider(),
            launcher=ProcessLauncher(
                LauncherSettings(grace_seconds=1.0),
                resolve_secret={"MODEL_KEY": KEY, "WRONG_KEY": "wrong-key-1"}.__getitem__,
            ),
            doors=HookServer(tools.door, tools.toolbox, MemoryJournal(tools.store)),
            transcripts=kept,
            clock=SystemClock(),
            hook_command=hook or hook_command(),
            homes=tmp_path / "homes",
            user_home=tmp_path / "person",
            environ={},
        )
        given: dict[str, Any] = {
            "name": "coder",
            "model": MODEL,
            "base_url": f"{server.url}/v1",
            "command": program,
            "env": {"OPENAI_API_KEY": "secret://MODEL_KEY"},
            **options,
        }
        agent = OpencodeCliAgent(AgentOptions(**given), deps)
        yield OpencodeHarness(agent, server, tools, kept, deps)
