"""The real Gemini CLI between a loopback model and Podium's own tool door, headless or over ACP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.agents.acp import AcpAgent
from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.gemini import GeminiCliAgent
from podium.core.decisions import Call, Decision, Effect, GateContext
from podium.core.events import AnyEvent, ToolCompleted, ToolFailed, ToolRefused, ToolRequested
from podium.core.turns import Reply, Turn
from podium.ports import Clock, Transcripts
from podium.sandbox import (
    HookServer,
    HookServerSettings,
    ProcessLauncher,
    hook_command,
    mcp_server_command,
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
from tests.integration.agents import clis
from tests.integration.agents.claude_harness import a_repository, git
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness

KEY = SECRET
"""The key is the secret that the tools' rig knows how to remove."""
MODEL = "gemini-2.5-flash"

Steps = Mapping[str, Sequence[Any]]
Kind = type[GeminiCliAgent] | type[AcpAgent]


@dataclass
class GeminiHarness:
    """The working objects of one test."""

    agent: GeminiCliAgent | AcpAgent
    server: ModelServer
    tools: Harness
    gate: ScriptedGate
    transcripts: MemoryTranscripts
    deps: AgentDeps
    options: AgentOptions

    @property
    def workspace(self) -> Path:
        return self.tools.root

    def turn(self, script: str, **changes: Any) -> Turn:
        given: dict[str, Any] = {
            "run_id": "run_1",
            "step_key": "work#0",
            "role": "developer",
            "prompt": f"SCRIPT:{script} do it",
            "workspace": str(self.workspace),
            **changes,
        }
        return Turn(**given)

    async def ask(self, script: str, **changes: Any) -> Reply:
        return await self.agent.ask(self.turn(script, **changes))

    def use_deps(self, **changes: Any) -> None:
        """The same agent, with a kit that differs."""
        self.deps = replace(self.deps, **changes)
        self.agent = type(self.agent)(self.options, self.deps)

    async def tool_events(self) -> list[AnyEvent]:
        kinds = (ToolRequested, ToolCompleted, ToolFailed, ToolRefused)
        return [event for event in await self.tools.events() if isinstance(event, kinds)]

    def model_messages(self) -> str:
        """All that the model was sent, as one text."""
        return repr([seen.body for seen in self.server.requests])

    def branch(self) -> str:
        return git(self.workspace, "branch", "--show-current")


@asynccontextmanager
async def gemini_harness(
    tmp_path: Path,
    steps: Steps,
    *,
    kind: Kind = GeminiCliAgent,
    denies: Sequence[str] = (),
    asks: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    script: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    transcripts: Transcripts | None = None,
) -> AsyncIterator[GeminiHarness]:
    """`denies` and `asks` are the tools, by their registered names, that the gate does not allow.

    `script` is played instead of the steps where those cannot say it.
    """

    def judge(call: Call, context: GateContext) -> Decision:
        if call.tool in denies:
            return decision(Effect.DENY, "the rules of the house")
        asked = call.tool in asks and context.approval is None
        return decision(Effect.ASK if asked else Effect.ALLOW)

    gate = ScriptedGate(judge)
    tools = make_harness(tmp_path, (*builtin_tools(), *own_tools()), gate=gate)
    a_repository(tools.root)
    kept = MemoryTranscripts()
    async with ModelServer(script or Script.by_marker(steps), key=KEY) as server:
        deps = AgentDeps(
            confinement_provider=FakeConfinementProvider(),
            launcher=ProcessLauncher(resolve_secret={"GEMINI_KEY": KEY}.__getitem__),
            doors=HookServer(
                tools.door, tools.toolbox, MemoryJournal(tools.store), HookServerSettings()
            ),
            transcripts=transcripts or kept,
            clock=clock or tools.clock,
            hook_command=hook_command(),
            toolbox_command=mcp_server_command(),
            homes=tmp_path / "homes",
            user_home=tmp_path / "person",
            environ={},
        )
        command = clis.gemini() if kind is GeminiCliAgent else (*clis.gemini(), "--acp")
        given: dict[str, Any] = {
            "name": "gemini",
            "model": MODEL,
            "base_url": server.url,
            "command": command,
            "env": {"GEMINI_API_KEY": "secret://GEMINI_KEY"},
            "options": {"attempts": 1},
            **(options or {}),
        }
        agent_options = AgentOptions(**given)
        agent = kind(agent_options, deps)
        yield GeminiHarness(agent, server, tools, gate, kept, deps, agent_options)
