"""Real programs on a terminal as agents: asked by the port, with their tools before Podium's own door."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podium.agents.tui.adapter import Adapter
from podium.agents.tui.claude import ClaudeTui
from podium.agents.tui.codex import CodexTui
from podium.agents.tui.gemini import GeminiTui
from podium.core.errors import AgentLost, NeedsHuman
from podium.testing import retry_until
from tests.integration.agents.tui import test_claude_tui, test_codex_tui, test_gemini_tui
from tests.integration.agents.tui.live import Options, files_below
from tests.integration.agents.tui.tui_harness import TuiHarness, tui_harness

PATCH = "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch\n"
BLOCK = test_claude_tui.BLOCK


@dataclass(frozen=True)
class Cli:
    """Differences between the CLIs in these tests."""

    adapter: Callable[[], Adapter]
    options: Options
    conversations: str
    """Files below the root that it writes them to."""
    talk: str
    """Field of a request with the conversation so far."""
    new_file: Callable[[Path], dict[str, Any]]
    """The model's wish for a file `new` in this folder."""

    def asked(
        self, root: Path, steps: dict[str, Any], **changes: Any
    ) -> AbstractAsyncContextManager[TuiHarness]:
        return tui_harness(root, self.adapter(), self.options, steps, **changes)

    def received(self, harness: TuiHarness, *words: str) -> bool:
        """Return whether the model was sent a conversation that contains all of these."""
        talks = [repr(request.body[self.talk]) for request in harness.server.requests]
        return any(all(word in talk for word in words) for talk in talks)

    def written_below(self, root: Path) -> str:
        found = [data for file, data in files_below(root) if file.match(self.conversations)]
        return b"".join(found).decode(errors="replace")


CLAUDE = Cli(
    ClaudeTui,
    test_claude_tui.options,
    "projects/*/*.jsonl",
    "messages",
    lambda folder: {"write": {"path": str(folder / "new"), "content": "x"}},
)
CODEX = Cli(
    CodexTui,
    partial(test_codex_tui.options, options={"sandbox": "danger-full-access"}),
    "rollout-*.jsonl",
    "input",
    lambda folder: {"custom_tool": {"name": "apply_patch", "input": PATCH}},
)
GEMINI = Cli(
    GeminiTui,
    test_gemini_tui.options,
    "chats/session-*.jsonl",
    "contents",
    lambda folder: {"write": {"path": "new", "content": "x"}},
)

pytestmark = pytest.mark.soak
cli_kind = pytest.mark.parametrize("cli", [CLAUDE, CODEX, GEMINI], ids=lambda cli: cli.adapter.kind)


@cli_kind
@pytest.mark.parametrize("confined", [False, True])
async def test_what_it_does_is_judged_and_receipted_like_any_other_agents_work(
    root: Path, cli: Cli, confined: bool
) -> None:
    steps = {
        "hi": ["Ready."],
        "work": [
            {"text": "I begin.", "run": "echo yes > allowed"},
            {"run": "touch forbidden"},
            {"run": "false"},
            cli.new_file(root / "workspace"),
            BLOCK,
        ],
    }
    primer = "You are PLANNER. SCRIPT:hi"
    async with cli.asked(root, steps, primer=primer, confined=confined) as harness:
        reply = await harness.ask("SCRIPT:work do it")
        made = {path.name for path in harness.tools.root.iterdir()}
        messages = [
            (event.type, getattr(event, "tool", ""))
            for event in await harness.tools.events()
            if event.type.startswith("tool_")
        ]
    assert (reply.text, reply.read_from) == (f"I begin.\n{BLOCK}", "transcript")
    assert reply.session
    assert made == {"allowed", "new"}
    assert sorted(messages) == [
        ("tool_completed", "run_command"),
        ("tool_completed", "write_file"),
        ("tool_failed", "run_command"),
        ("tool_refused", "run_command"),
        ("tool_requested", "run_command"),
        ("tool_requested", "run_command"),
        ("tool_requested", "write_file"),
    ]


@cli_kind
async def test_a_second_turn_is_of_the_same_conversation(root: Path, cli: Cli) -> None:
    async with cli.asked(root, {"one": ["1"], "two": ["2"]}) as harness:
        first = await harness.ask("SCRIPT:one first")
        second = await harness.ask("SCRIPT:two second")
        assert (first.text, second.text) == ("1", "2")
        assert first.session == second.session
        assert cli.received(harness, "SCRIPT:one", "SCRIPT:two")


@cli_kind
async def test_a_turn_that_was_cancelled_at_once_leaves_it_ready_for_the_next(
    root: Path, cli: Cli
) -> None:
    slow = {"text": "Too late.", "delay_seconds": 100}
    async with cli.asked(root, {"slow": [slow], "next": ["Next."]}) as harness:
        asking = asyncio.ensure_future(harness.ask("SCRIPT:slow"))
        await harness.server.wait_for_requests(1, 120)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await harness.ask("SCRIPT:next")).text == "Next."


@cli_kind
async def test_one_that_is_killed_at_work_is_asked_to_go_on_in_its_conversation(
    root: Path, cli: Cli
) -> None:
    script = {
        "rules": [
            {"when": "interrupted by a restart", "steps": ["I go on."]},
            {"marker": "slow", "steps": [{"text": "Too late.", "delay_seconds": 100}]},
        ]
    }
    async with cli.asked(root, script) as harness:
        asking = asyncio.ensure_future(harness.ask("SCRIPT:slow"))
        # One that is killed before it wrote the message down is given it again.
        await retry_until(lambda: "SCRIPT:slow" in cli.written_below(root))
        await harness.server.wait_for_requests(1, 120)
        (state,) = await harness.pair.states()
        os.kill(state.pid, signal.SIGKILL)
        assert (await asking).text == "I go on."
        assert cli.received(harness, "SCRIPT:slow", "interrupted by a restart")


@cli_kind
async def test_failing_model_is_reported_with_its_words(root: Path, cli: Cli) -> None:
    failing = {"status": 400, "message": "the model is unwell"}
    async with cli.asked(root, {"fail": [failing], "next": ["Next."]}) as harness:
        with pytest.raises(AgentLost, match="the model is unwell"):
            await harness.ask("SCRIPT:fail")
        assert (await harness.ask("SCRIPT:next")).text == "Next."


async def test_a_provider_that_is_too_busy_is_a_question_to_a_person(root: Path) -> None:
    async with GEMINI.asked(root, {"busy": [{"status": 503}]}) as harness:
        with pytest.raises(NeedsHuman, match="Keep trying"):
            await harness.ask("SCRIPT:busy")
