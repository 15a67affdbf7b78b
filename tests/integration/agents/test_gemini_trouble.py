"""Failures of the real Gemini CLI, each with its own error and no process left."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.agents.headless.gemini.records import GeminiStream, error_at_end
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    ContextOverflow,
    PodiumError,
    RateLimited,
    TimedOut,
    ToolMissing,
)
from podium.core.processes import ProcessExit
from podium.core.turns import Turn, TurnLimits
from podium.testing import FakeTurnDoor, FixedClock, MemoryTranscripts, retry_until
from tests.integration.agents.claude_harness import living
from tests.integration.agents.gemini_harness import GeminiHarness, Steps, gemini_harness
from tests.soaking import in_soak

SHORT = TurnLimits(seconds=60)
TURN = Turn(run_id="run_1", step_key="work#0", role="tester", prompt="go", workspace="/w")


async def trouble(harness: GeminiHarness, script: str = "fail", **changes: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await harness.ask(script, **{"limits": SHORT, **changes})
    assert living(str(harness.workspace)) == []
    return caught.value


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"status": 401}, AgentNotLoggedIn),
        in_soak({"fault": "bad_key"}, AgentNotLoggedIn),
        in_soak({"status": 429}, RateLimited),
        in_soak({"status": 400}, AgentRejected),
        in_soak({"status": 404}, AgentRejected),
        in_soak({"status": 500}, AgentUnavailable),
        in_soak({"fault": "drop"}, AgentUnavailable),
        in_soak({"fault": "drop_before_headers"}, AgentUnavailable),
        in_soak({"fault": "truncate", "text": "half an answer"}, AgentUnavailable),
        in_soak({"fault": "invalid_stream", "text": "half an answer"}, AgentUnavailable),
        ({"fault": "context_overflow"}, ContextOverflow),
        in_soak({"text": "", "finish": "safety"}, AgentRefused),
        # A prompt that the provider blocks looks to the CLI like a stream that broke off.
        in_soak({"text": "", "finish": "refusal"}, AgentUnavailable),
        in_soak({"text": ""}, AgentUnavailable),
    ],
    ids=str,
)
async def test_every_trouble_has_its_own_error(
    tmp_path: Path, step: Mapping[str, Any], expected: type[PodiumError]
) -> None:
    async with gemini_harness(tmp_path, {"fail": [step]}) as harness:
        error = await trouble(harness)
    assert type(error) is expected, error
    assert "'gemini'" in str(error)
    assert error.usage is not None


async def test_limit_is_reported_with_the_time_it_ends(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {"fail": [{"status": 429, "retry_after": 120}]}) as harness:
        error = await trouble(harness)
        expected = harness.tools.clock.now() + timedelta(seconds=120)
    assert isinstance(error, RateLimited)
    assert error.retry_at == expected


async def test_a_server_that_is_down_is_an_outage(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {}, options={"base_url": "http://127.0.0.1:9"}) as harness:
        error = await trouble(harness)
    assert isinstance(error, AgentUnavailable)


async def test_a_hanging_model_ends_with_the_seconds_of_the_turn(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {"hang": [{"fault": "hang"}]}) as harness:
        error = await trouble(harness, "hang", limits=TurnLimits(seconds=4))
    assert isinstance(error, TimedOut)


async def test_cancelling_leaves_no_process_behind_not_even_detached_ones(tmp_path: Path) -> None:
    steps: Steps = {"stay": [{"run": "touch here; setsid sleep 600 & sleep 600"}, "Never."]}
    async with gemini_harness(tmp_path, steps) as harness:
        asking = asyncio.create_task(harness.ask("stay"))
        await retry_until((harness.workspace / "here").exists)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert living(str(harness.workspace)) == []


async def test_the_turns_it_may_take_are_a_budget(tmp_path: Path) -> None:
    steps: Steps = {"work": [{"run": "true"}, {"run": "echo"}, {"run": "ls"}, "Done."]}
    async with gemini_harness(tmp_path, steps) as harness:
        error = await trouble(harness, "work", limits=TurnLimits(turns=2))
        assert len(harness.server.requests) == 2
    assert isinstance(error, BudgetSpent)
    assert (error.scope, error.measure, error.limit) == ("step", "turns", 2)
    assert error.usage is not None
    assert error.usage.input_tokens > 0


async def test_a_model_that_goes_in_circles_is_stopped(tmp_path: Path) -> None:
    again = {"marker": "again", "each_time": True, "steps": [{"run": "true"}] * 12}
    async with gemini_harness(tmp_path, {}, script={"rules": [again]}) as harness:
        error = await trouble(harness, "again")
        assert len(harness.server.requests) < 12
    assert type(error) is AgentLost
    assert "loop" in str(error)


async def test_missing_program_is_reported_with_how_to_get_it(tmp_path: Path) -> None:
    async with gemini_harness(
        tmp_path, {}, options={"command": ("/nonexistent/gemini",)}
    ) as harness:
        error = await trouble(harness)
    assert isinstance(error, ToolMissing)
    assert "npm install" in str(error)


@pytest.mark.soak  # a start takes seconds, and its siblings here hold most of it
async def test_broken_settings_in_a_workspace_are_named(tmp_path: Path) -> None:
    async with gemini_harness(tmp_path, {"hello": ["Hello."]}) as harness:
        (harness.workspace / ".gemini").mkdir()
        (harness.workspace / ".gemini/settings.json").write_text("{nope")
        error = await trouble(harness, "hello")
    assert isinstance(error, AgentRejected)
    assert ".gemini/settings.json" in str(error)


@pytest.mark.soak  # a start takes seconds, and its siblings here hold most of it
async def test_a_model_that_takes_a_second_try_is_given_one(tmp_path: Path) -> None:
    flaky = {"marker": "flaky", "each_time": True, "steps": [{"status": 500}, "Here again."]}
    async with gemini_harness(
        tmp_path, {}, script={"rules": [flaky]}, options={"options": {}}
    ) as harness:
        reply = await harness.ask("flaky")
    assert reply.text == "Here again."


PRETENDER = """
import os, signal, sys
sys.stdin.read()
print('{"type":"init","session_id":"s","model":"m"}', flush=True)
print('{"type":"message","role":"assistant","content":"It looks done.","delta":true}', flush=True)
%s
"""


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("sys.exit(0)", "exit 0"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "signal 15"),
        ("os.write(1, b'\\xff\\xfe{\"type\":\\n' + b'\\0' * 9000); sys.exit(0)", "exit 0"),
        ('print(\'{"type":"result","status":"success"}\'); sys.exit(7)', "exit 7"),
        ("print('[1]\\n\"x\"\\n' + '{' * 100000); sys.exit(3)", "exit 3"),
    ],
    ids=["exit_0_without_a_result", "killed", "garbage", "result_and_failure", "nested"],
)
async def test_only_a_result_and_a_good_exit_together_are_a_success(
    tmp_path: Path, ending: str, words: str
) -> None:
    program = tmp_path / "pretender.py"
    program.write_text(PRETENDER % ending)
    command = (sys.executable, str(program))
    async with gemini_harness(tmp_path, {}, options={"command": command}) as harness:
        error = await trouble(harness, "hello")
    assert type(error) is AgentLost
    assert words in str(error)


def received_of(*records: Mapping[str, Any]) -> GeminiStream:
    with MemoryTranscripts().open(TURN, "gemini") as transcript:
        stream = GeminiStream()
        stream.attend(FakeTurnDoor(), transcript)
        for record in records:
            asyncio.run(stream.take(json.dumps(record)))
    return stream


def api_error(message: str) -> GeminiStream:
    return received_of({"type": "result", "status": "error", "error": {"message": message}})


@pytest.mark.parametrize(
    ("stream", "ended", "expected"),
    [
        (received_of(), ProcessExit(exit_code=41, stderr=b"Invalid auth method"), AgentNotLoggedIn),
        (received_of(), ProcessExit(exit_code=42, stderr=b"No input provided"), AgentRejected),
        (received_of(), ProcessExit(exit_code=52, stderr=b"Error in settings.json"), AgentRejected),
        (received_of(), ProcessExit(exit_code=1, stderr=b"Unknown argument: fast"), AgentRejected),
        (received_of(), ProcessExit(exit_code=1, stderr=b"boom"), AgentLost),
        (received_of(), ProcessExit(exit_code=None, signal=9), AgentLost),
        (
            api_error("[API Error: fetch failed sending request]"),
            ProcessExit(exit_code=1),
            AgentUnavailable,
        ),
        (api_error("[API Error: overloaded]"), ProcessExit(exit_code=247), AgentUnavailable),
        (api_error("[API Error: models/x is not found]"), ProcessExit(exit_code=1), AgentRejected),
        (api_error("[API Error: nonsense]"), ProcessExit(exit_code=144), AgentRejected),
        (
            api_error('[API Error: {"error":{"code":403}}]'),
            ProcessExit(exit_code=147),
            AgentNotLoggedIn,
        ),
        (
            api_error("[API Error: You have exhausted your daily quota on this model.]"),
            ProcessExit(exit_code=1),
            RateLimited,
        ),
        (api_error(""), ProcessExit(exit_code=0), AgentUnavailable),
    ],
)
def test_every_end_is_read_for_what_it_is(
    stream: GeminiStream, ended: ProcessExit, expected: type[PodiumError]
) -> None:
    error = error_at_end("gemini", TURN, stream, ended, FixedClock().now())
    assert type(error) is expected


def test_it_may_be_silent_only_when_it_waits_for_an_approval() -> None:
    cut = received_of({"type": "result", "status": "error"})
    now, ended = FixedClock().now(), ProcessExit(exit_code=1)
    assert type(error_at_end("gemini", TURN, cut, ended, now)) is AgentUnavailable
    assert error_at_end("gemini", TURN, cut, ended, now, ("ap_1",)) is None
    down = api_error('[API Error: {"error":{"code":503}}]')
    assert type(error_at_end("gemini", TURN, down, ended, now, ("ap_1",))) is AgentUnavailable


def test_every_answer_of_the_model_is_an_exchange() -> None:
    payload = {"type": "message", "role": "assistant", "content": "x", "delta": True}
    use, result = {"type": "tool_use", "tool_name": "t"}, {"type": "tool_result"}
    user = {"type": "message", "role": "user", "content": "go"}
    output = received_of(
        user, payload, payload, use, use, result, result, use, result, payload, payload
    )
    output.started = True
    usage = output.usage(2.0)
    assert (usage.turns, usage.seconds, usage.complete) == (3, 2.0, False)


async def test_limits_it_cannot_be_held_to_are_warned_of(tmp_path: Path) -> None:
    program = tmp_path / "pretender.py"
    result = """print('{"type":"result","status":"success","stats":{}}')\nprint("no record")"""
    program.write_text(PRETENDER % result)
    command = (sys.executable, str(program))
    async with gemini_harness(tmp_path, {}, options={"command": command}) as harness:
        reply = await harness.ask("hello", limits=TurnLimits(tokens=5, usd=0.5, turns=3))
    tokens, usd = reply.warnings
    assert ("5 tokens" in tokens, "0.5 usd" in usd) == (True, True)
    kept = [json.loads(line) for line in harness.transcripts.text.splitlines()]
    assert kept[-1] == {"printed": "no record"}


def test_daily_limit_reports_when_it_ends() -> None:
    now = FixedClock().now()
    output = api_error("[API Error: Your quota will reset after 10h4m5s.]\nPlease wait")
    error = error_at_end("gemini", TURN, output, ProcessExit(exit_code=173), now)
    assert isinstance(error, RateLimited)
    assert error.retry_at == now + timedelta(hours=10, minutes=4, seconds=5)


def test_noise_on_stderr_is_no_failure() -> None:
    result = {"type": "result", "status": "success", "stats": {}}
    payload = {"type": "message", "role": "assistant", "content": "Fine.", "delta": True}
    ended = ProcessExit(
        exit_code=0, stderr=b'Error: {"error": {"code": 500}}\n[STARTUP] never ended'
    )
    assert (
        error_at_end("gemini", TURN, received_of(payload, result), ended, FixedClock().now())
        is None
    )
