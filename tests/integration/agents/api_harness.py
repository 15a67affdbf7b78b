"""API agents of every provider on the loopback model server, with everything around them in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from podium.agents.api import ApiAgent
from podium.agents.deps import AgentDeps, AgentOptions
from podium.core.decisions import CallOutcome, Effect, HookAnswer, Tier, ToolSpec
from podium.core.model import Json
from podium.core.turns import Turn, TurnLimits
from podium.ports import HookServers
from podium.testing import (
    FakeConfinementProvider,
    FakeHookDoors,
    FakeLauncher,
    FixedClock,
    MemoryTranscripts,
)
from podium.testing.modelserver import ModelServer
from tests.soaking import in_soak

KEY = "sk-very-secret-0123456789"

MODELS = {
    "google": "gemini-2.5-flash",
    "openai": "gpt-4.1",
    "openai-responses": "gpt-4.1",
    "openrouter": "openai/gpt-4.1",
    "anthropic": "claude-opus-4-6",
}
KEY_NAMES = {
    "google": "GEMINI_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
PROVIDERS = tuple(MODELS)
TWO_PROVIDERS = [item if item in ("google", "anthropic") else in_soak(item) for item in PROVIDERS]
"""The contract suite of function calling asks all of them every time; these tests do so in `make soak`."""

NOTE = ToolSpec(
    name="keep.note",
    description="Keeps a note.",
    tier=Tier.T1,
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
OFFERED = "keep_note"
"""The name that providers take for it."""


class Verdict(BaseModel):
    """A contract."""

    verdict: str
    score: int


def allowed(result: Json = "done") -> HookAnswer:
    outcome = CallOutcome(ok=True, result=result)
    return HookAnswer(decision=Effect.ALLOW, call="call_1", outcome=outcome)


def failed(error: str) -> HookAnswer:
    return HookAnswer(decision=Effect.ALLOW, outcome=CallOutcome(ok=False, error=error))


def denied(reason: str) -> HookAnswer:
    return HookAnswer(decision=Effect.DENY, say=reason)


def waiting(approval: str) -> HookAnswer:
    say = f"waiting for approval {approval}; end your turn"
    return HookAnswer(decision=Effect.ASK, say=say, approval_id=approval)


def note(text: str) -> dict[str, Any]:
    """A step in which the model keeps a note."""
    return {"tools": [{"name": OFFERED, "arguments": {"text": text}}]}


def script(**steps: Sequence[Any]) -> dict[str, Any]:
    """Rules by marker, each with steps counted by requests."""
    rules = [
        {"marker": marker, "each_time": True, "steps": list(item)} for marker, item in steps.items()
    ]
    return {"rules": rules}


@dataclass
class ApiHarness:
    """Parts of an agent, and a record of its actions with them."""

    folder: Path
    server: ModelServer
    provider: str
    answers: Iterable[HookAnswer] = ()
    tools: Iterable[ToolSpec] = ()
    options: Mapping[str, Json] = field(default_factory=dict)
    env: Mapping[str, str] | None = None
    model: str = ""
    other_doors: HookServers | None = None

    def __post_init__(self) -> None:
        self.doors = FakeHookDoors(answers=self.answers, tools=self.tools)
        self.transcripts = MemoryTranscripts()
        self.clock = FixedClock()
        self.pauses: list[float] = []
        self.agent = self.new_agent()

    def new_agent(self) -> ApiAgent:
        """As a new process would make it."""
        options = AgentOptions(
            name="thinker",
            model=f"{self.provider}:{self.model or MODELS[self.provider]}",
            base_url=self.base_url,
            env={KEY_NAMES[self.provider]: "secret://MODEL_KEY"}
            if self.env is None
            else dict(self.env),
            options=dict(self.options),
        )
        return ApiAgent(
            options,
            self.deps(),
            {"MODEL_KEY": KEY}.__getitem__,
            sleep=self._sleep,
            chance=lambda: 0.5,
        )

    @property
    def base_url(self) -> str:
        return self.server.url + ("/v1" if self.provider.startswith("open") else "")

    def turn(self, prompt: str, **more: Any) -> Turn:
        more = {"limits": TurnLimits(seconds=300), **more}
        return Turn(
            run_id="run_1",
            step_key="work:0",
            role="developer",
            prompt=prompt,
            workspace=str(self.folder),
            **more,
        )

    @property
    def tool_results(self) -> list[tuple[str, str]]:
        return [(kind, text) for kind, text in self.doors.door.progress]

    def files(self) -> list[Path]:
        return sorted((self.folder / "homes").rglob("*.json"))

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    def deps(self) -> AgentDeps:
        return AgentDeps(
            confinement_provider=FakeConfinementProvider(),
            launcher=FakeLauncher(),
            doors=self.other_doors or self.doors,
            transcripts=self.transcripts,
            clock=self.clock,
            hook_command=("false",),
            homes=self.folder / "homes",
            user_home=self.folder,
            environ={},
        )
