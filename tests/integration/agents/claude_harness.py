"""The real Claude Code between a loopback model and Podium's own tool door."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.claude import ClaudeCliAgent
from podium.core.decisions import Call, Decision, Effect, GateContext
from podium.core.events import AnyEvent
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
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness

KEY = SECRET
"""The key is the secret that the tools' rig knows how to remove."""
MODEL = "claude-sonnet-4-5"

Steps = Mapping[str, Any]
"""Marker → steps, as `Script.by_marker` takes them."""


@dataclass
class ClaudeHarness:
    """The working objects of one test."""

    agent: ClaudeCliAgent
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

    async def events(self) -> list[AnyEvent]:
        return await self.tools.events()

    def model_messages(self) -> str:
        """All that the model was sent, as one text."""
        return repr([seen.body for seen in self.server.requests])

    def branch(self) -> str:
        return git(self.workspace, "branch", "--show-current")


@asynccontextmanager
async def claude_harness(
    tmp_path: Path,
    steps: Steps,
    *,
    denies: Sequence[str] = (),
    asks: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    script: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    transcripts: Transcripts | None = None,
) -> AsyncIterator[ClaudeHarness]:
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
            launcher=ProcessLauncher(resolve_secret={"CLAUDE_KEY": KEY}.__getitem__),
            doors=HookServer(
                tools.door, tools.toolbox, MemoryJournal(tools.store), HookServerSettings()
            ),
            transcripts=transcripts or kept,
            clock=clock or tools.clock,
            hook_command=hook_command(),
            toolbox_command=mcp_server_command(),
            homes=tmp_path / "homes",
            user_home=tmp_path / "person",
            environ=environ or {},
        )
        given: dict[str, Any] = {
            "name": "claude",
            "model": MODEL,
            "base_url": server.url,
            "command": (clis.claude(),),
            "env": {"ANTHROPIC_API_KEY": "secret://CLAUDE_KEY"},
            **(options or {}),
        }
        agent = ClaudeCliAgent(AgentOptions(**given), deps)
        yield ClaudeHarness(agent, server, tools, gate, kept, deps)


def a_repository(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    (root / "README").write_text("x\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "work")


def git(root: Path, *words: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def living(word: str) -> list[str]:
    """Command lines of the living processes that have this word in theirs, or in their folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            folder = os.readlink(entry / "cwd")
        except OSError:
            continue
        if word in command or word in folder:
            found.append(command)
    return found
