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
from tests.integration.agents.claude_rig import living
from tests.integration.agents.gemini_rig import KEY, GeminiRig, Steps, gemini_rig
from tests.integration.agents.test_gemini_door import LEAVE, _plant_traps, use
from tests.soaking import in_soak


async def test_a_plain_question_gets_a_plain_answer(tmp_path: Path) -> None:
    said = {"text": "Hello there.", "usage": {"input": 1000, "output": 20}}
    async with gemini_rig(tmp_path, {"hello": [said]}, kind=AcpAgent) as rig:
        (rig.workspace / "notes.txt").write_text("what nobody may read")
        reply = await rig.ask("hello", prompt="/plan SCRIPT:hello see @notes.txt\n")
        asked = rig.server.requests[0].body["contents"][-1]["parts"][-1]["text"]
        assert "nobody may read" not in rig.told_the_model()
    assert asked == "\n/plan SCRIPT:hello see @notes.txt\n"
    assert reply.text == "Hello there."
    assert reply.version == clis.versions()["gemini"]
    assert (reply.warnings, reply.untold) == ((), ())
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 20)
    assert 0 < reply.usage.usd < 0.01
    assert KEY not in rig.transcripts.text
    assert "Hello there." in rig.transcripts.text


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_conversation_goes_on_where_it_was_also_within_a_minute(tmp_path: Path) -> None:
    steps: Steps = {"one": ["First."], "two": ["Second."], "three": ["Third."]}
    async with gemini_rig(tmp_path, steps, kind=AcpAgent) as rig:
        first = await rig.ask("one")
        second = await rig.ask("two", session=first.session)
        third = await rig.ask("three", session=second.session)
        told = repr(rig.server.requests[-1].body)
    assert (second.text, third.text) == ("Second.", "Third.")
    assert second.session == third.session == first.session
    assert "First." in told
    assert "Second." in told


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_conversation_it_does_not_know_is_said_plainly(tmp_path: Path) -> None:
    async with gemini_rig(tmp_path, {}, kind=AcpAgent) as rig:
        with pytest.raises(AgentRejected, match="start a new conversation"):
            await rig.ask("hello", session="0b5ba0e2-6d3d-4a6e-8a36-3f0f6d0ad9a1")
        assert rig.server.requests == []


async def test_what_is_allowed_is_done_and_receipted(tmp_path: Path) -> None:
    write = use("write_file", file_path="pyproject.toml", content="[project]\n")
    edit = use("replace", file_path="README", old_string="x", new_string="y", instruction="i")
    steps: Steps = {"work": [{"run": "echo made > made.txt"}, write, edit, "Made."]}
    async with gemini_rig(tmp_path, steps, kind=AcpAgent) as rig:
        reply = await rig.ask("work")
        events = await rig.tool_events()
        assert (rig.workspace / "made.txt").read_text() == "made\n"
        assert (rig.workspace / "pyproject.toml").read_text() == "[project]\n"
        assert (rig.workspace / "README").read_text() == "y\n"
    assert (reply.text, reply.untold, reply.warnings) == ("Made.", (), ())
    requested = [event for event in events if isinstance(event, ToolRequested)]
    completed = [event for event in events if isinstance(event, ToolCompleted)]
    # An edit is judged once, as the file that Podium writes for it, so that it is approved once.
    judged = ["run_command", "write_file", "write_file"]
    assert [event.tool for event in requested] == judged
    assert sorted(event.tool for event in completed) == sorted(judged)
    assert requested[0].arguments["command"] == "echo made > made.txt"
    observed = {(call.tool, call.observed) for call in rig.gate.judged}
    assert ("write_file", False) in observed
    assert ("run_command", True) in observed


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_the_exit_code_of_a_command_is_known(tmp_path: Path) -> None:
    async with gemini_rig(
        tmp_path, {"work": [{"run": "echo made; exit 3"}, "Made."]}, kind=AcpAgent
    ) as rig:
        reply = await rig.ask("work")
        failed = [event for event in await rig.tool_events() if isinstance(event, ToolFailed)]
    assert [event.error for event in failed] == ["exit code 3"]
    assert reply.warnings == ()


@pytest.mark.smoke
async def test_a_denied_command_does_not_run_and_the_reason_goes_with_the_reply(
    tmp_path: Path,
) -> None:
    steps: Steps = {"leave": [{"run": LEAVE}, "I could not."]}
    async with gemini_rig(tmp_path, steps, kind=AcpAgent, denies=("run_command",)) as rig:
        reply = await rig.ask("leave")
        assert rig.branch() == "work"
        assert not (rig.workspace / "ran.marker").exists()
        (refused,) = await rig.tool_events()
    assert isinstance(refused, ToolRefused)
    assert reply.text == "I could not."
    (untold,) = reply.untold
    assert untold.startswith("Permission Denied: ")
    assert "git checkout main" in untold
    assert "the rules of the house" in untold


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_write_is_denied_as_the_file_it_becomes(tmp_path: Path) -> None:
    write = use("write_file", file_path="new.txt", content="hi")
    async with gemini_rig(
        tmp_path, {"write": [write, "No."]}, kind=AcpAgent, denies=("write_file",)
    ) as rig:
        reply = await rig.ask("write")
        assert not (rig.workspace / "new.txt").exists()
    assert any("the rules of the house" in words for words in reply.untold)


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_what_waits_for_a_person_is_named_in_the_reply(tmp_path: Path) -> None:
    async with gemini_rig(
        tmp_path, {"leave": [{"run": LEAVE}, "I wait."]}, kind=AcpAgent, asks=("run_command",)
    ) as rig:
        reply = await rig.ask("leave")
        assert rig.branch() == "work"
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
    async with gemini_rig(
        tmp_path, {"use": [*calls, "Done."]}, kind=AcpAgent, denies=judged
    ) as rig:
        (rig.workspace / "sub").mkdir()
        reply = await rig.ask("use", own_tools=("web_search", "web_fetch"))
        assert [call.tool for call in rig.gate.judged] == judged
        assert rig.gate.judged[0].arguments["cwd"] == "sub"
        assert rig.gate.judged[1].arguments["command"] == "cat README"
    assert reply.text == "Done."
    assert len(reply.untold) == len(judged)


EASY = """{"reasoning": "-", "model_choice": "flash", "complexity_reasoning": "-", "complexity_score": 1}"""


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_subagents_are_not_given_and_that_is_said(tmp_path: Path) -> None:
    script = {
        "rules": [
            # Where nobody chose a model it asks a small one which to take, for 90 seconds if need be.
            {"model": "flash-lite", "offers_tools": False, "steps": [EASY], "each_time": True},
            {"marker": "use", "steps": [use("google_web_search", query="x"), "Done."]},
        ]
    }
    own = ("WebSearch", "subagents", "codebase_investigator")
    async with gemini_rig(
        tmp_path, {}, script=script, kind=AcpAgent, denies=("web_search",), options={"model": ""}
    ) as rig:
        reply = await rig.ask("use", own_tools=own)
        assert [call.tool for call in rig.gate.judged] == ["web_search"]
        assert "invoke_agent" not in rig.server.requests[-1].tools
    one, two = reply.warnings
    assert "'subagents' of its own; it is not available" in one
    assert "'codebase_investigator'" in two
    # Nobody chose one: it is the one that it tells of.
    assert reply.model.startswith("gemini-")


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_it_may_be_silent_when_it_waits_for_a_person(tmp_path: Path) -> None:
    steps: Steps = {"leave": [{"run": LEAVE}, {"text": ""}]}
    async with gemini_rig(tmp_path, steps, kind=AcpAgent, asks=("run_command",)) as rig:
        reply = await rig.ask("leave")
    assert (len(reply.waiting_approvals), reply.text) == (1, "")


async def test_a_workspace_cannot_configure_it(tmp_path: Path) -> None:
    async with gemini_rig(
        tmp_path, {"leave": [{"run": LEAVE}, "No."]}, kind=AcpAgent, denies=("run_command",)
    ) as rig:
        _plant_traps(rig.workspace)
        reply = await rig.ask("leave")
        assert rig.branch() == "work"
        assert [path.name for path in rig.workspace.glob("TRAP*")] == []
        assert "a planted rule" not in rig.told_the_model()
        assert len(rig.gate.judged) == 1
    assert reply.text == "No."


async def trouble(rig: GeminiRig, script: str = "fail", **changes: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await rig.ask(script, **{"limits": TurnLimits(seconds=60), **changes})
    assert living(str(rig.workspace)) == []
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
async def test_each_trouble_has_its_own_error(
    tmp_path: Path, step: Mapping[str, Any], expected: type[PodiumError]
) -> None:
    async with gemini_rig(tmp_path, {"fail": [step]}, kind=AcpAgent) as rig:
        error = await trouble(rig)
        now = rig.tools.clock.now()
    assert type(error) is expected, error
    if isinstance(error, RateLimited):
        assert error.retry_at == now + timedelta(seconds=120)


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_server_that_is_down_is_an_outage(tmp_path: Path) -> None:
    down = {"base_url": "http://127.0.0.1:9"}
    async with gemini_rig(tmp_path, {}, kind=AcpAgent, options=down) as rig:
        assert isinstance(await trouble(rig), AgentUnavailable)


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_hanging_model_ends_with_the_seconds_of_the_turn(tmp_path: Path) -> None:
    async with gemini_rig(tmp_path, {"hang": [{"fault": "hang"}]}, kind=AcpAgent) as rig:
        error = await trouble(rig, "hang", limits=TurnLimits(seconds=5))
    assert isinstance(error, TimedOut)


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_cancelling_leaves_no_process_behind_not_even_detached_ones(tmp_path: Path) -> None:
    steps: Steps = {"stay": [{"run": "touch here; setsid sleep 600 & sleep 600"}, "Never."]}
    async with gemini_rig(tmp_path, steps, kind=AcpAgent) as rig:
        asking = asyncio.create_task(rig.ask("stay"))
        await retry_until((rig.workspace / "here").exists)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert living(str(rig.workspace)) == []
        assert "session/cancel" in rig.transcripts.text


@pytest.mark.soak  # held in test_acp.py without a start, which takes seconds
async def test_a_huge_answer_comes_whole(tmp_path: Path) -> None:
    flood = {"flood_bytes": 50_000_000, "then": "THE END"}
    calm = {"options": {"stop_loops": False}}
    async with gemini_rig(tmp_path, {"much": [flood]}, kind=AcpAgent, options=calm) as rig:
        reply = await rig.ask("much")
    assert len(reply.text) >= 50_000_000
    assert reply.text.endswith("THE END")
