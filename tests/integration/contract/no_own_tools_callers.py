"""The real CLIs without hands, as agents of the function-calling kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.claude import ClaudeCliAgent
from podium.agents.headless.codex import CodexCliAgent
from podium.agents.headless.gemini import GeminiCliAgent
from podium.ports import Agent
from podium.testing import MemoryTranscripts
from podium.testing.modelserver import ModelServer
from tests.integration.agents import clis
from tests.unit.contract.function_calling_harness import (
    KEY,
    NAME,
    Caller,
    CallingHarness,
    Cast,
    Casting,
    ModelTurn,
    reported_by,
    steps_of,
)

MakeAgent = Callable[[AgentOptions, AgentDeps], Agent]


def _cli(
    make: MakeAgent, command: Callable[[], tuple[str, ...]], model: str, key_name: str, prefix: str
) -> Casting:
    @asynccontextmanager
    async def cast(harness: CallingHarness, heartbeats: Sequence[ModelTurn]) -> AsyncIterator[Cast]:
        started = command()
        script = {"default": {"steps": steps_of(heartbeats, prefix)}}
        async with ModelServer(script, key=KEY) as server:
            options = AgentOptions(
                name=NAME,
                model=model,
                base_url=server.url,
                command=started,
                env={key_name: "secret://MODEL_KEY"},
                options={"hands": False},
            )
            agent = make(options, harness.deps(MemoryTranscripts()))
            yield Cast(agent, lambda: reported_by(server))

    return cast


MCP_ONLY = [
    Caller(
        "gemini-cli",
        _cli(GeminiCliAgent, clis.gemini, "gemini-2.5-flash", "GEMINI_API_KEY", "mcp_podium_"),
    ),
    Caller(
        "claude-code",
        _cli(
            ClaudeCliAgent,
            lambda: (clis.claude(),),
            "claude-sonnet-4-5",
            "ANTHROPIC_API_KEY",
            "mcp__podium__",
        ),
    ),
    Caller("codex", _cli(CodexCliAgent, lambda: (clis.codex(),), "gpt-5.5", "OPENAI_API_KEY", "")),
]
