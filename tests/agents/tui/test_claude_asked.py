"""Claude Code on a terminal as an agent: asked by the port, with its tools before Podium's own door."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from podium.agents.tui.claude import ClaudeTui
from podium.domain.errors import AgentLost
from podium.testing import retry_until
from tests.agents.tui.desk import at_desk
from tests.agents.tui.test_claude_tui import BLOCK, options


def written_below(root: Path) -> str:
    """All that it has written down of its conversations."""
    return "".join(path.read_text() for path in root.rglob("projects/*/*.jsonl"))


@pytest.mark.soak
@pytest.mark.parametrize("confined", [False, True])
async def test_what_it_does_is_judged_and_receipted_like_any_other_agents_work(
    root: Path, confined: bool
) -> None:
    steps = {
        "hi": ["Ready."],
        "work": [
            {"text": "I begin.", "run": "echo yes > allowed"},
            {"run": "touch forbidden"},
            {"run": "false"},
            {"write": {"path": str(root / "workspace/new"), "content": "x"}},
            BLOCK,
        ],
    }
    primer = "You are PLANNER. SCRIPT:hi"
    async with at_desk(root, ClaudeTui(), options, steps, primer=primer, confined=confined) as desk:
        reply = await desk.ask("SCRIPT:work do it")
        made = {path.name for path in desk.tools.root.iterdir()}
        told = [
            (event.type, getattr(event, "tool", ""))
            for event in await desk.tools.events()
            if event.type.startswith("tool_")
        ]
    assert (reply.text, reply.read_from) == (f"I begin.\n{BLOCK}", "transcript")
    assert reply.session
    assert made == {"allowed", "new"}
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
async def test_a_turn_that_was_cancelled_at_once_leaves_it_ready_for_the_next(root: Path) -> None:
    slow = {"text": "Too late.", "delay_seconds": 100}
    async with at_desk(root, ClaudeTui(), options, {"slow": [slow], "next": ["Next."]}) as desk:
        asking = asyncio.ensure_future(desk.ask("SCRIPT:slow"))
        await desk.server.wait_for_requests(1, 120)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await desk.ask("SCRIPT:next")).text == "Next."


@pytest.mark.soak
async def test_one_that_is_killed_at_work_is_asked_to_go_on_in_its_conversation(root: Path) -> None:
    script = {
        "rules": [
            {"when": "interrupted by a restart", "steps": ["I go on."]},
            {"marker": "slow", "steps": [{"text": "Too late.", "delay_seconds": 100}]},
        ]
    }
    async with at_desk(root, ClaudeTui(), options, script) as desk:
        asking = asyncio.ensure_future(desk.ask("SCRIPT:slow"))
        # One that is killed before it wrote the message down is given it again.
        await retry_until(lambda: "SCRIPT:slow" in written_below(root))
        await desk.server.wait_for_requests(1, 120)
        (state,) = await desk.pair.states()
        os.kill(state.pid, signal.SIGKILL)
        assert (await asking).text == "I go on."
        assert "SCRIPT:slow" in repr(desk.server.requests[-1].body["messages"])


@pytest.mark.soak
async def test_a_model_that_fails_is_told_with_its_words(root: Path) -> None:
    failing = {"status": 400, "message": "the model is unwell"}
    async with at_desk(root, ClaudeTui(), options, {"fail": [failing], "next": ["Next."]}) as desk:
        with pytest.raises(AgentLost, match="the model is unwell"):
            await desk.ask("SCRIPT:fail")
        assert (await desk.ask("SCRIPT:next")).text == "Next."
