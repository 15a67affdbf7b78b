"""The real Gemini CLI over ACP: its questions reach the gate, and nothing acts without them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.agents.acp import AcpAgent
from podium.core.errors import (
    AgentNotLoggedIn,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
    RateLimited,
    TimedOut,
)
from podium.core.events import ToolCompleted, ToolFailed, ToolRefused, ToolRequested
from podium.core.turns import TurnLimits
from podium.testing import retry_until
from tests.integration.agents import clis
from tests.integration.agents.claude_harness import living
from tests.integration.agents.gemini_harness import KEY, GeminiHarness, Steps, gemini_harness
from tests.integration.agents.test_gemini_door import LEAVE, _plant_traps, use
from tests.soaking import in_soak


async def test_a_plain_question_gets_a_plain_answer(tmp_path: Path) -> None:
    payload = {"text": "Hello there.", "usage": {"input": 1000, "output": 20}}
    async with gemini_harness(tmp_path, {"hello": [payload]}, kind=AcpAgent) as harness:
        (harness.workspace / "notes.txt").write_text("what nobody may read")
        reply = await harness.ask("hello", prompt="/plan SCRIPT:hello see @notes.txt\n")
        asked = harness.server.requests[0].body["contents"][-1]["parts"][-1]["text"]
        assert "nobody may read" not in harness.model_messages()
    assert asked == "\n/plan SCRIPT:hello see @notes.txt\n"
    assert reply.text == "Hello there."
    assert reply.version == clis.versions()["gemini"]
    assert (reply.warnings, reply.untold) == ((), ())
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 20)
    assert 0 < reply.usage.usd < 0.01
    assert KEY not in harness.transcripts.text
    assert "Hello there." in harness.transcripts.text


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_conversation_goes_on_where_it_was_also_within_a_minute(tmp_path: Path) -> None:
    steps: Steps = {"one": ["First."], "two": ["Second."], "three": ["Third."]}
    async with gemini_harness(tmp_path, steps, kind=AcpAgent) as harness:
        first = await harness.ask("one")
        second = await harness.ask("two", session=first.session)
        third = await harness.ask("three", session=second.session)
        text = repr(harness.server.requests[-1].body)
    assert (second.text, third.text) == ("Second.", "Third.")
    assert second.session == third.session == first.session
    assert "First." in text
    assert "Second." in text


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_unknown_conversation_is_reported_plainly(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {}, kind=AcpAgent) as harness:
        with pytest.raises(AgentRejected, match="start a new conversation"):
            await harness.ask("hello", session="0b5ba0e2-6d3d-4a6e-8a36-3f0f6d0ad9a1")
        assert harness.server.requests == []


async def test_what_is_allowed_is_done_and_receipted(tmp_path: Path) -> None:
    write = use("write_file", file_path="pyproject.toml", content="[project]\n")
    edit = use("replace", file_path="README", old_string="x", new_string="y", instruction="i")
    steps: Steps = {"work": [{"run": "echo made > made.txt"}, write, edit, "Made."]}
    async with gemini_harness(tmp_path, steps, kind=AcpAgent) as harness:
        reply = await harness.ask("work")
        events = await harness.tool_events()
        assert (harness.workspace / "made.txt").read_text() == "made\n"
        assert (harness.workspace / "pyproject.toml").read_text() == "[project]\n"
        assert (harness.workspace / "README").read_text() == "y\n"
    assert (reply.text, reply.untold, reply.warnings) == ("Made.", (), ())
    requested = [event for event in events if isinstance(event, ToolRequested)]
    completed = [event for event in events if isinstance(event, ToolCompleted)]
    # An edit is judged once, as the file that Podium writes for it, so that it is approved once.
    judged = ["run_command", "write_file", "write_file"]
    assert [event.tool for event in requested] == judged
    assert sorted(event.tool for event in completed) == sorted(judged)
    assert requested[0].arguments["command"] == "echo made > made.txt"
    observed = {(call.tool, call.observed) for call in harness.gate.judged}
    assert ("write_file", False) in observed
    assert ("run_command", True) in observed


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_the_exit_code_of_a_command_is_known(tmp_path: Path) -> None:
    async with gemini_harness(
        tmp_path, {"work": [{"run": "echo made; exit 3"}, "Made."]}, kind=AcpAgent
    ) as harness:
        reply = await harness.ask("work")
        failed = [event for event in await harness.tool_events() if isinstance(event, ToolFailed)]
    assert [event.error for event in failed] == ["exit code 3"]
    assert reply.warnings == ()


@pytest.mark.smoke
async def test_a_denied_command_does_not_run_and_the_reason_goes_with_the_reply(
    tmp_path: Path,
) -> None:
    steps: Steps = {"leave": [{"run": LEAVE}, "I could not."]}
    async with gemini_harness(tmp_path, steps, kind=AcpAgent, denies=("run_command",)) as harness:
        reply = await harness.ask("leave")
        assert harness.branch() == "work"
        assert not (harness.workspace / "ran.marker").exists()
        (refused,) = await harness.tool_events()
    assert isinstance(refused, ToolRefused)
    assert reply.text == "I could not."
    (untold,) = reply.untold
    assert untold.startswith("Permission Denied: ")
    assert "git checkout main" in untold
    assert "the rules of the house" in untold


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_write_is_denied_as_the_file_it_becomes(tmp_path: Path) -> None:
    write = use("write_file", file_path="new.txt", content="hi")
    async with gemini_harness(
        tmp_path, {"write": [write, "No."]}, kind=AcpAgent, denies=("write_file",)
    ) as harness:
        reply = await harness.ask("write")
        assert not (harness.workspace / "new.txt").exists()
    assert any("the rules of the house" in words for words in reply.untold)


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_what_waits_for_a_person_is_named_in_the_reply(tmp_path: Path) -> None:
    async with gemini_harness(
        tmp_path, {"leave": [{"run": LEAVE}, "I wait."]}, kind=AcpAgent, asks=("run_command",)
    ) as harness:
        reply = await harness.ask("leave")
        assert harness.branch() == "work"
    assert len(reply.waiting_approvals) == 1
    assert reply.untold == ()  # what the person says is told, not that one was asked


async def test_every_tool_is_asked_for_also_what_it_deems_safe(tmp_path: Path) -> None:
    calls = [
        use("run_shell_command", command="ls", dir_path="sub"),
        use("run_shell_command", command="cat README"),
        use("read_file", file_path="README"),
        use("list_directory", dir_path="."),
        use("glob", pattern="*"),
        use("grep_search", pattern="x"),
        use("google_web_search", query="anything"),
        use("web_fetch", prompt="read http://127.0.0.1:9/"),
    ]
    judged = [
        *("run_command", "run_command", "read_file", "list_files", "list_files", "search_text"),
        *("web_search", "web_fetch"),
    ]
    async with gemini_harness(
        tmp_path, {"use": [*calls, "Done."]}, kind=AcpAgent, denies=judged
    ) as harness:
        (harness.workspace / "sub").mkdir()
        reply = await harness.ask("use", own_tools=("web_search", "web_fetch"))
        assert [call.tool for call in harness.gate.judged] == judged
        assert harness.gate.judged[0].arguments["cwd"] == "sub"
        assert harness.gate.judged[1].arguments["command"] == "cat README"
    assert reply.text == "Done."
    assert len(reply.untold) == len(judged)


EASY = """{"reasoning": "-", "model_choice": "flash", "complexity_reasoning": "-", "complexity_score": 1}"""


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_subagents_are_not_given_and_that_is_reported(tmp_path: Path) -> None:
    script = {
        "rules": [
            # Where nobody chose a model it asks a small one which to take, for 90 seconds if need be.
            {"model": "flash-lite", "offers_tools": False, "steps": [EASY], "each_time": True},
            {"marker": "use", "steps": [use("google_web_search", query="x"), "Done."]},
        ]
    }
    own = ("WebSearch", "subagents", "codebase_investigator")
    async with gemini_harness(
        tmp_path, {}, script=script, kind=AcpAgent, denies=("web_search",), options={"model": ""}
    ) as harness:
        reply = await harness.ask("use", own_tools=own)
        assert [call.tool for call in harness.gate.judged] == ["web_search"]
        assert "invoke_agent" not in harness.server.requests[-1].tools
    one, two = reply.warnings
    assert "'subagents' of its own; it is not available" in one
    assert "'codebase_investigator'" in two
    # Nobody chose one: it is the one that it tells of.
    assert reply.model.startswith("gemini-")


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_it_may_be_silent_when_it_waits_for_a_person(tmp_path: Path) -> None:
    steps: Steps = {"leave": [{"run": LEAVE}, {"text": ""}]}
    async with gemini_harness(tmp_path, steps, kind=AcpAgent, asks=("run_command",)) as harness:
        reply = await harness.ask("leave")
    assert (len(reply.waiting_approvals), reply.text) == (1, "")


async def test_a_workspace_cannot_configure_it(tmp_path: Path) -> None:
    async with gemini_harness(
        tmp_path, {"leave": [{"run": LEAVE}, "No."]}, kind=AcpAgent, denies=("run_command",)
    ) as harness:
        _plant_traps(harness.workspace)
        reply = await harness.ask("leave")
        assert harness.branch() == "work"
        assert [path.name for path in harness.workspace.glob("TRAP*")] == []
        assert "a planted rule" not in harness.model_messages()
        assert len(harness.gate.judged) == 1
    assert reply.text == "No."


async def trouble(harness: GeminiHarness, script: str = "fail", **changes: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await harness.ask(script, **{"limits": TurnLimits(seconds=60), **changes})
    assert living(str(harness.workspace)) == []
    return caught.value


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        in_soak({"status": 401}, AgentNotLoggedIn),
        in_soak({"status": 429, "retry_after": 120}, RateLimited),
        in_soak({"status": 404}, AgentRejected),
        in_soak({"status": 500}, AgentUnavailable),
        in_soak({"fault": "drop_before_headers"}, AgentUnavailable),
        in_soak({"fault": "context_overflow"}, ContextOverflow),
        in_soak({"text": "", "finish": "safety"}, AgentUnavailable),
    ],
    ids=str,
)
async def test_every_trouble_has_its_own_error(
    tmp_path: Path, step: Mapping[str, Any], expected: type[PodiumError]
) -> None:
    async with gemini_harness(tmp_path, {"fail": [step]}, kind=AcpAgent) as harness:
        error = await trouble(harness)
        now = harness.tools.clock.now()
    assert type(error) is expected, error
    if isinstance(error, RateLimited):
        assert error.retry_at == now + timedelta(seconds=120)


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_server_that_is_down_is_an_outage(tmp_path: Path) -> None:
    down = {"base_url": "http://127.0.0.1:9"}
    async with gemini_harness(tmp_path, {}, kind=AcpAgent, options=down) as harness:
        assert isinstance(await trouble(harness), AgentUnavailable)


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_hanging_model_ends_with_the_seconds_of_the_turn(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {"hang": [{"fault": "hang"}]}, kind=AcpAgent) as harness:
        error = await trouble(harness, "hang", limits=TurnLimits(seconds=5))
    assert isinstance(error, TimedOut)


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_cancelling_leaves_no_process_behind_not_even_detached_ones(tmp_path: Path) -> None:
    steps: Steps = {"stay": [{"run": "touch here; setsid sleep 600 & sleep 600"}, "Never."]}
    async with gemini_harness(tmp_path, steps, kind=AcpAgent) as harness:
        asking = asyncio.create_task(harness.ask("stay"))
        await retry_until((harness.workspace / "here").exists)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert living(str(harness.workspace)) == []
        assert "session/cancel" in harness.transcripts.text


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_huge_answer_comes_whole(tmp_path: Path) -> None:
    flood = {"flood_bytes": 50_000_000, "then": "THE END"}
    calm = {"options": {"stop_loops": False}}
    async with gemini_harness(tmp_path, {"much": [flood]}, kind=AcpAgent, options=calm) as harness:
        reply = await harness.ask("much")
    assert len(reply.text) >= 50_000_000
    assert reply.text.endswith("THE END")
