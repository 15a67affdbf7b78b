"""Agents of the function-calling kind, each with a model that wishes for what a test tells it to.

A new kind is one more line in `CALLERS`: something that makes an agent and a model which plays the
beats. Behind the door stands what Podium runs with: the gate's rules, the tool door, the toolbox.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.agents import AgentScript, ScriptedAgent
from podium.agents.api import ApiAgent
from podium.agents.deps import AgentDeps, AgentOptions
from podium.core.approval_steps import grant
from podium.core.decisions import Tier, ToolSpec
from podium.core.events import AnyEvent
from podium.core.model import Json
from podium.core.turns import Turn, TurnLimits
from podium.policy import Policy, PolicyLayer, compile_policy
from podium.ports import Agent, Store
from podium.sandbox import HookServer, LauncherSettings, ProcessLauncher, hook_command
from podium.sandbox import mcp_server_command as toolbox_command
from podium.testing import FakeConfinementProvider, FixedClock, MemoryJournal, MemoryTranscripts
from podium.testing.modelserver import ModelServer
from podium.tools import Tool, ToolScope, builtin_tools
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness

KEY = SECRET
"""The model's key is the secret that the tools' rig knows how to remove."""
NAME = "thinker"
PROMPT = "Keep my notes."
INPUT, OUTPUT = 100, 10
"""Tokens that every answer says were used."""
LARGE = 200_000
RESULT_BYTES = 4_000

RULES = [
    {"name": "notes", "tool": ["keep_note", "finish"], "decision": "allow"},
    {"name": "odd", "tool": ["look", "break_down", "take_long", "tell_all"], "decision": "allow"},
    {"name": "mail", "tool": "send_mail", "decision": "ask"},
    {"name": "disk", "tool": "wipe", "decision": "deny", "why": "disks are off limits"},
]


@dataclass(frozen=True)
class ModelTurn:
    """One answer of the model: the calls it wishes for, and its words."""

    calls: tuple[tuple[str, dict[str, Json]], ...] = ()
    words: str = ""


def model_turn(*calls: tuple[str, dict[str, Json]]) -> ModelTurn:
    return ModelTurn(calls=calls)


def note(text: str) -> tuple[str, dict[str, Json]]:
    return "keep_note", {"text": text}


def say(words: str) -> ModelTurn:
    return ModelTurn(words=words)


@dataclass
class CallingHarness:
    """Tools, rules and a store, and what was really done."""

    folder: Path
    given_store: Store | None = None
    """None: one of its own."""
    tools: Harness = field(init=False)
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        layer = PolicyLayer(origin="user", policy=Policy.model_validate({"rules": RULES}))
        self.tools = make_harness(
            self.folder,
            self._registered(),
            gate=compile_policy([layer]),
            store=self.given_store,
            result_bytes=RESULT_BYTES,
        )

    @property
    def store(self) -> Store:
        return self.tools.store

    def deps(self, transcripts: MemoryTranscripts) -> AgentDeps:
        return AgentDeps(
            launcher=ProcessLauncher(
                LauncherSettings(grace_seconds=0.2, linger_seconds=0.01),
                resolve_secret={"MODEL_KEY": KEY}.__getitem__,
            ),
            confinement_provider=FakeConfinementProvider(),
            doors=HookServer(self.tools.door, self.tools.toolbox, MemoryJournal(self.store)),
            transcripts=transcripts,
            clock=FixedClock(),
            hook_command=hook_command(),
            homes=self.folder / "homes",
            user_home=self.folder / "person",
            environ={},
            toolbox_command=toolbox_command(),
        )

    def turn(self, *, number: int = 0, session: str | None = None, **limits: Any) -> Turn:
        return Turn(
            run_id="run_1",
            step_key=f"ask#{number}",
            role="tester",
            prompt=PROMPT,
            workspace=str(self.tools.root),
            session=session,
            limits=TurnLimits.model_validate({"seconds": 120, **limits}),
        )

    async def approve(self, approval_id: str) -> None:
        def say_yes(tx: Any) -> None:
            approval = tx.approval(approval_id)
            tx.save_approval(grant(approval, "ann", self.tools.clock.now()))

        await self.store.write(say_yes)

    async def events(self) -> list[AnyEvent]:
        return await self.tools.events()

    def _registered(self) -> list[Tool]:
        async def keep(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
            self.done.append(str(arguments.get("text", scope.call.tool)))
            return {"kept": f"as number {len(self.done)}"}

        async def look(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
            return {"seen": "nothing new"}

        async def break_down(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
            raise RuntimeError("the paper is used up")

        async def take_long(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
            await asyncio.Event().wait()
            return {}

        async def notify_all(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
            return {"all": "y" * LARGE}

        finish = [tool for tool in builtin_tools() if tool.spec.name == "finish"]
        return [
            *finish,
            Tool(_spec("keep_note", Tier.T1, "text", "kept"), keep),
            Tool(_spec("send_mail", Tier.T1, "text", "kept"), keep),
            Tool(_spec("wipe", Tier.T1, "text", "kept"), keep),
            Tool(_spec("look", Tier.T0, "text", "seen"), look),
            Tool(_spec("break_down", Tier.T1, "text", "none"), break_down),
            Tool(_spec("take_long", Tier.T0, "text", "none", timeout_seconds=0.05), take_long),
            Tool(_spec("tell_all", Tier.T0, "text", "all"), notify_all),
        ]


def _spec(name: str, tier: Tier, argument: str, result: str, **more: Any) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=f"The tool {name}.",
        tier=tier,
        receipt_fields=(result,),
        idempotent=True,
        input_schema={
            "type": "object",
            "properties": {argument: {"type": "string"}},
            "additionalProperties": False,
        },
        **more,
    )


@dataclass
class Cast:
    """An agent with its part."""

    agent: Agent
    last_prompt: Callable[[], str]
    """All that the model has heard, the results of its calls among it."""


Casting = Callable[[CallingHarness, Sequence[ModelTurn]], AbstractAsyncContextManager[Cast]]


@dataclass(frozen=True)
class Caller:
    """A kind of agent that has no hands but the calls it makes."""

    name: str
    cast: Casting
    ends_at_finish: bool = True
    """False: a program of others, which may still ask its model what to do next."""


@asynccontextmanager
async def _scripted(
    harness: CallingHarness, heartbeats: Sequence[ModelTurn]
) -> AsyncIterator[Cast]:
    acts: list[dict[str, Any]] = []
    for heartbeat in heartbeats:
        acts.append({"usage": {"input": INPUT, "output": OUTPUT}})
        acts += [{"call": tool, "with": arguments} for tool, arguments in heartbeat.calls]
        acts += [{"say": heartbeat.words}] if heartbeat.words else []
    script = AgentScript.model_validate({"turns": [{"role": "tester", "acts": acts}]})
    transcripts = MemoryTranscripts()
    deps = harness.deps(transcripts)
    agent = ScriptedAgent(NAME, script, deps.launcher, deps.doors, transcripts=transcripts)
    yield Cast(agent, lambda: transcripts.text)


def steps_of(heartbeats: Sequence[ModelTurn], prefix: str = "") -> list[dict[str, Any]]:
    """Steps of the model server; `prefix` stands before the names that the agent gives the tools."""
    usage = {"input": INPUT, "output": OUTPUT}
    return [
        {
            "text": heartbeat.words,
            "tools": [
                {"name": prefix + tool, "arguments": given} for tool, given in heartbeat.calls
            ],
            "usage": usage,
        }
        for heartbeat in heartbeats
    ]


def _api(model: str, key_name: str, path: str = "") -> Casting:
    @asynccontextmanager
    async def cast(harness: CallingHarness, heartbeats: Sequence[ModelTurn]) -> AsyncIterator[Cast]:
        part = {"each_time": True, "steps": steps_of(heartbeats)}
        async with ModelServer({"default": part}, key=KEY) as server:
            options = AgentOptions(
                name=NAME,
                model=model,
                base_url=server.url + path,
                env={key_name: "secret://MODEL_KEY"},
            )
            deps = harness.deps(MemoryTranscripts())
            agent = ApiAgent(options, deps, {"MODEL_KEY": KEY}.__getitem__)
            yield Cast(agent, lambda: reported_by(server))

    return cast


def reported_by(server: ModelServer) -> str:
    return json.dumps([seen.body for seen in server.requests], ensure_ascii=False)


CALLERS = [
    Caller("scripted", _scripted),
    Caller("gemini-api", _api("google:gemini-2.5-flash", "GEMINI_API_KEY")),
    Caller("openai-compatible", _api("openai:gpt-4.1", "OPENAI_API_KEY", "/v1")),
    Caller("anthropic", _api("anthropic:claude-opus-4-6", "ANTHROPIC_API_KEY")),
]
