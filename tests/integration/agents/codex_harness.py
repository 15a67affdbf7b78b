"""The real codex between a loopback model and Podium's own tool door."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.codex import CodexCliAgent
from podium.core.decisions import Call, Decision, Effect, GateContext
from podium.core.events import AnyEvent
from podium.core.model import Json
from podium.core.turns import Reply, Turn
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
from tests.unit.tools.toolbox_harness import Harness, make_harness

KEY = "sk-loopback-0123456789abcdefghij"
MODEL = "gpt-5.5"

Steps = Mapping[str, Sequence[Any]]


@dataclass
class CodexHarness:
    """The working objects of one test."""

    agent: CodexCliAgent
    server: ModelServer
    tools: Harness
    gate: ScriptedGate
    transcripts: MemoryTranscripts
    deps: AgentDeps

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

    async def events(self, *types: str) -> list[AnyEvent]:
        return [event for event in await self.tools.events() if not types or event.type in types]

    def judged(self) -> list[tuple[str, dict[str, Json]]]:
        return [(call.tool, call.arguments) for call in self.gate.judged]

    def model_messages(self) -> str:
        """All that the model was sent, as one text."""
        return repr([seen.body for seen in self.server.requests])

    def branch(self) -> str:
        return git(self.workspace, "branch", "--show-current")


@asynccontextmanager
async def codex_harness(
    tmp_path: Path,
    steps: Steps,
    *,
    denies: Sequence[str] = (),
    asks: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    hook: tuple[str, ...] | None = None,
    script: Mapping[str, Any] | None = None,
) -> AsyncIterator[CodexHarness]:
    """`denies` and `asks` are words of calls, as text, that the gate does not allow.

    `script` is played instead of the steps where those cannot say it.
    """

    def judge(call: Call, context: GateContext) -> Decision:
        words = f"{call.tool} {call.arguments}"
        if any(word in words for word in denies):
            return decision(Effect.DENY, "the rules of the house")
        asked = any(word in words for word in asks) and context.approval is None
        return decision(Effect.ASK if asked else Effect.ALLOW)

    gate = ScriptedGate(judge)
    tools = make_harness(tmp_path, (*builtin_tools(), *own_tools()), gate=gate)
    a_repository(tools.root)
    transcripts = MemoryTranscripts()
    async with ModelServer(script or Script.by_marker(steps), key=KEY) as server:
        deps = AgentDeps(
            confinement_provider=FakeConfinementProvider(),
            launcher=ProcessLauncher(resolve_secret={"OPENAI": KEY}.__getitem__),
            doors=HookServer(
                tools.door, tools.toolbox, MemoryJournal(tools.store), HookServerSettings()
            ),
            transcripts=transcripts,
            clock=tools.clock,
            hook_command=hook or hook_command(),
            toolbox_command=mcp_server_command(),
            homes=tmp_path / "homes",
            user_home=tmp_path / "person",
            environ={},
        )
        given: dict[str, Any] = {
            "name": "codex",
            "model": MODEL,
            "base_url": server.url,
            "command": (clis.codex(),),
            "env": {"OPENAI_API_KEY": "secret://OPENAI"},
            **(options or {}),
        }
        agent = CodexCliAgent(AgentOptions(**given), deps)
        yield CodexHarness(agent, server, tools, gate, transcripts, deps)


def a_repository(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Test")
    git(root, "config", "user.email", "test@example.org")
    (root / "README").write_text("x\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "work")


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def living(folder: Path) -> list[str]:
    """Command lines of the living processes that work below this folder, or name it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = os.readlink(entry / "cwd")
        except OSError:
            continue
        if str(folder) in command or str(folder) in place:
            found.append(command)
    return found
