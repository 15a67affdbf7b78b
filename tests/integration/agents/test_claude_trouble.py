"""Failures of the real Claude Code, each with its own error and no process left."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.agents.headless.claude.agent import error_at_end
from podium.agents.headless.claude.session import ClaudeDoor, ClaudeStream
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    CallInDoubt,
    ContextOverflow,
    PodiumError,
    RateLimited,
    TimedOut,
    ToolMissing,
)
from podium.core.events import AgentProgressed
from podium.core.model import Json
from podium.core.processes import ProcessExit
from podium.core.turns import TurnLimits
from podium.platform.system_clock import SystemClock
from podium.sandbox import HookServer
from podium.testing import FixedClock, retry_until
from tests.integration.agents.claude_harness import ClaudeHarness, claude_harness, living
from tests.soaking import in_soak

SHORT = TurnLimits(seconds=60)


async def trouble(harness: ClaudeHarness, script: str = "fail", **changes: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await harness.ask(script, **changes)
    assert living(str(harness.workspace)) == []
    return caught.value


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"status": 401}, AgentNotLoggedIn),
        in_soak({"status": 403}, AgentNotLoggedIn),
        in_soak({"status": 429}, RateLimited),
        in_soak({"status": 400}, AgentRejected),
        in_soak({"status": 404}, AgentRejected),
        in_soak({"status": 413}, ContextOverflow),
        ({"status": 500}, AgentUnavailable),
        in_soak({"status": 503}, AgentUnavailable),
        in_soak({"status": 529}, AgentUnavailable),
        in_soak({"fault": "drop"}, AgentUnavailable),
        in_soak({"fault": "drop_before_headers"}, AgentUnavailable),
        in_soak({"fault": "truncate", "text": "half an answer"}, AgentUnavailable),
        in_soak({"fault": "invalid_stream"}, AgentUnavailable),
        in_soak({"fault": "error_event"}, AgentUnavailable),
        ({"fault": "context_overflow"}, ContextOverflow),
        in_soak({"text": "I will not.", "finish": "refusal"}, AgentRefused),
        in_soak({"text": "Half of it", "finish": "length"}, AgentRejected),
        ({"text": ""}, AgentLost),
    ],
)
async def test_every_trouble_has_its_own_error(
    tmp_path: Path, step: Mapping[str, Any], expected: type[PodiumError]
) -> None:
    async with claude_harness(tmp_path, {"fail": [step]}) as harness:
        error = await trouble(harness, limits=SHORT)
    assert isinstance(error, expected)
    assert "'claude'" in str(error)
    assert error.usage is not None


async def test_a_wrong_key_is_not_tried_for_minutes(tmp_path: Path) -> None:
    async with claude_harness(
        tmp_path, {}, options={"env": {"ANTHROPIC_API_KEY": "sk-wrong"}}
    ) as harness:
        error = await trouble(harness, "hello")
        assert len(harness.server.requests) == 1
    assert isinstance(error, AgentNotLoggedIn)
    assert "ANTHROPIC_API_KEY" in str(error)
    assert "sk-wrong" not in str(error)


async def test_without_any_login_it_says_how_to_log_in(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {}, options={"env": {}}) as harness:
        error = await trouble(harness, "hello")
        assert harness.server.requests == []
    assert isinstance(error, AgentNotLoggedIn)
    assert "/login" in str(error)


async def test_limit_is_reported_with_the_time_it_ends(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {"fail": [{"status": 429, "retry_after": 120}]}) as harness:
        error = await trouble(harness)
        assert len(harness.server.requests) == 1
        expected = harness.tools.clock.now() + timedelta(seconds=120)
    assert isinstance(error, RateLimited)
    assert error.retry_at == expected


async def test_subscription_reports_when_its_limit_ends(tmp_path: Path) -> None:
    # The CLI believes no moment that is over by its own clock.
    ends = SystemClock().now().replace(microsecond=0) + timedelta(hours=3)
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(ends.timestamp())),
    }
    steps = {"fail": [{"status": 429, "headers": headers}]}
    login = {"env": {"CLAUDE_CODE_OAUTH_TOKEN": "secret://CLAUDE_KEY"}}
    async with claude_harness(tmp_path, steps, options=login, clock=SystemClock()) as harness:
        error = await trouble(harness)
    assert isinstance(error, RateLimited)
    assert error.retry_at == ends


async def test_short_outage_is_waited_out_and_reported(tmp_path: Path) -> None:
    rule = {"marker": "flaky", "each_time": True, "steps": [{"status": 500}, "Here again."]}
    async with claude_harness(tmp_path, {}, script={"rules": [rule]}) as harness:
        reply = await harness.ask("flaky")
        messages = [event for event in await harness.events() if isinstance(event, AgentProgressed)]
    assert reply.text == "Here again."
    assert "500" in next(event.text for event in messages if event.kind == "retry")


async def test_a_server_that_is_down_is_an_outage(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {}, options={"base_url": "http://127.0.0.1:9"}) as harness:
        error = await trouble(harness, limits=SHORT)
    assert isinstance(error, AgentUnavailable)


async def test_a_hanging_model_ends_with_the_seconds_of_the_turn(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {"hang": [{"fault": "hang"}]}) as harness:
        error = await trouble(harness, "hang", limits=TurnLimits(seconds=2))
    assert isinstance(error, TimedOut)


async def test_cancelling_leaves_no_process_not_even_a_detached_one(tmp_path: Path) -> None:
    away = "setsid sleep 987 & setsid -f sleep 987; sleep 987"
    async with claude_harness(
        tmp_path, {"away": [{"run": away}, "Never."], "hello": ["Hello."]}
    ) as harness:
        asking = asyncio.create_task(harness.ask("away"))
        await retry_until(lambda: len(living(str(harness.workspace))) >= 4)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert living(str(harness.workspace)) == []
        assert (await harness.events())[-1].type == "tool_abandoned"
        again = await harness.ask("hello")
    assert again.text == "Hello."


async def test_a_crash_loses_the_turn_and_says_so(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {"die": [{"run": "kill -9 $PPID"}, "Never."]}) as harness:
        error = await trouble(harness, "die")
    assert type(error) is AgentLost
    assert "signal 9" in str(error)


async def test_being_asked_to_end_is_no_success(tmp_path: Path) -> None:
    async with claude_harness(
        tmp_path, {"die": [{"run": "kill -TERM $PPID; sleep 5"}, "Never."]}
    ) as harness:
        error = await trouble(harness, "die")
    assert isinstance(error, AgentLost)


async def test_a_program_that_is_not_there_is_named_with_how_to_install_it(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {}, options={"command": ("claude-nowhere",)}) as harness:
        error = await trouble(harness)
    assert isinstance(error, ToolMissing)
    assert "npm install" in str(error)


async def test_a_conversation_it_does_not_have_is_rejected(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {}) as harness:
        unknown = await trouble(harness, session="00000000-0000-4000-8000-000000000000")
        foreign = await trouble(harness, session="thread --dangerously-skip-permissions")
    assert isinstance(unknown, AgentRejected)
    assert isinstance(foreign, AgentRejected)
    assert "session" in str(unknown)


@pytest.mark.parametrize(
    ("limits", "measure"),
    [
        (TurnLimits(turns=2), "turns"),
        in_soak(TurnLimits(usd=0.05), "usd"),
        in_soak(TurnLimits(tokens=25_000), "tokens"),
    ],
)
async def test_a_limit_of_the_turn_ends_it(
    tmp_path: Path, limits: TurnLimits, measure: str
) -> None:
    again = {"run": "ls", "usage": {"input": 10_000, "output": 100}}
    async with claude_harness(tmp_path, {"loop": [again] * 20}) as harness:
        error = await trouble(harness, "loop", limits=limits)
        assert len(harness.server.requests) <= 4
    assert isinstance(error, BudgetSpent)
    assert (error.scope, error.measure) == ("step", measure)
    assert error.usage is not None
    assert error.usage.input_tokens >= 20_000


PRETENDED = """
import json, sys
for line in sys.stdin:
    record = json.loads(line)
    if record["type"] == "user":
        break
"""
"""A program that takes what Claude Code takes; what it does next is each test's own."""

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "All done.",
    "num_turns": 1,
    "stop_reason": "end_turn",
}


def pretending(then: str) -> dict[str, Any]:
    return {"command": (sys.executable, "-IS", "-c", PRETENDED + then)}


async def test_an_answer_of_a_program_that_fails_afterwards_does_not_count(tmp_path: Path) -> None:
    options = pretending(f"print({json.dumps(json.dumps(RESULT))}); sys.exit(3)")
    async with claude_harness(tmp_path, {}, options=options) as harness:
        error = await trouble(harness)
    assert isinstance(error, AgentLost)
    assert "exit 3" in str(error)


async def test_a_good_exit_without_an_answer_does_not_count(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {}, options=pretending("print('All done.')")) as harness:
        error = await trouble(harness)
    assert isinstance(error, AgentLost)


async def test_a_success_that_calls_itself_an_error_is_an_error(tmp_path: Path) -> None:
    text = json.dumps({**RESULT, "is_error": True, "result": "something broke"})
    async with claude_harness(tmp_path, {}, options=pretending(f"print({text!r})")) as harness:
        error = await trouble(harness)
    assert isinstance(error, AgentLost)
    assert "something broke" in str(error)


@pytest.mark.parametrize(
    "noise",
    [
        "not json at all",
        "[1, 2, 3]",
        "[" * 100_000,
        '{"type": "control_request", "request_id": 7, "request": null}',
        '{"type": "control_request", "request_id": "a", "request": {"subtype": "hook_callback"}}',
        '{"type": "control_request", "request_id": "a", "request": {"subtype": "unheard_of"}}',
        '{"type": "system", "subtype": "api_retry", "attempt": "x", "retry_delay_ms": -1}',
        '{"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "u"}]}}',
        '{"type": "assistant", "message": {"content": [null, {"type": "tool_use"}]}}',
        '{"type": "stream_event", "event": {"type": "message_start", "message": []}}',
        '{"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1e300}}',
    ],
)
async def test_noise_between_the_records_does_no_harm(tmp_path: Path, noise: str) -> None:
    text = json.dumps(RESULT)
    options = pretending(f"print({noise!r}); sys.stdout.flush(); print({text!r})")
    async with claude_harness(tmp_path, {}, options=options) as harness:
        reply = await harness.ask("anything")
    assert reply.text == "All done."


async def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    raw = json.dumps(RESULT).encode().replace(b"All done.", b"All \xff done.")
    options = pretending(f"sys.stdout.buffer.write({raw!r})")
    async with claude_harness(tmp_path, {}, options=options) as harness:
        reply = await harness.ask("anything")
    assert reply.text == "All \ufffd done."


async def test_an_unheard_of_question_is_answered_with_an_error_and_nothing_is_permitted(
    tmp_path: Path,
) -> None:
    ask = {"type": "control_request", "request_id": "q", "request": {"subtype": "mcp_message"}}
    then = (
        f"print({json.dumps(ask)!r}, flush=True)\n"
        "answer = json.loads(sys.stdin.readline())\n"
        f"print(json.dumps({{**{RESULT!r}, 'result': answer['response']['subtype']}}))"
    )
    async with claude_harness(tmp_path, {}, options=pretending(then)) as harness:
        reply = await harness.ask("anything")
        assert harness.gate.judged == []
    assert reply.text == "error"


async def test_a_program_that_does_not_know_a_switch_is_rejected_in_its_own_words(
    tmp_path: Path,
) -> None:
    then = "sys.exit(\"error: unknown option '--json-schema'\")"
    async with claude_harness(tmp_path, {}, options=pretending(then)) as harness:
        error = await trouble(harness)
    assert isinstance(error, AgentRejected)
    assert "--json-schema" in str(error)


NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        ("You've hit your session limit · resets 3pm (UTC)", NOON + timedelta(hours=3)),
        ("You've hit your limit · resets 11:30am (UTC)", NOON + timedelta(hours=23, minutes=30)),
        ("You've hit your limit · resets 3pm (Europe/Berlin)", NOON + timedelta(hours=2)),
        ("You've hit your limit · resets 12am (UTC)", NOON + timedelta(hours=12)),
        ("Claude AI usage limit reached|1767279600", datetime(2026, 1, 1, 15, 0, tzinfo=UTC)),
        ("You've hit your limit · resets 3pm (Nowhere/At_All)", None),
        ("You've hit your limit · resets 99pm (UTC)", None),
        ("Credit balance is too low", None),
    ],
)
def test_the_words_of_a_limit_say_when_it_ends(words: str, ends: datetime | None) -> None:
    stream = ClaudeStream(FixedClock(NOON))
    stream.take({**RESULT, "is_error": True, "terminal_reason": "api_error", "result": words})
    error = error_at_end("claude", stream, ProcessExit(exit_code=1), NOON)
    assert isinstance(error, RateLimited)
    assert error.retry_at == ends


def test_a_prompt_taken_for_a_command_is_no_answer() -> None:
    stream = ClaudeStream(FixedClock(NOON))
    stream.take({**RESULT, "num_turns": 0, "result": "/cost isn't available in this environment."})
    error = error_at_end("claude", stream, ProcessExit(exit_code=0), NOON)
    assert isinstance(error, AgentRejected)


ASKING = """
def ask(number):
    given = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": f"u{number}"}
    request = {"subtype": "hook_callback", "callback_id": "x", "input": given}
    print(json.dumps({"type": "control_request", "request_id": f"q{number}", "request": request}))

"""


async def never_answered(self: ClaudeDoor, request: Mapping[str, Json]) -> dict[str, Json]:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def test_more_questions_than_can_be_answered_are_answered_by_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Judging takes no time with the rig's gate; here it takes for ever.
    monkeypatch.setattr(ClaudeDoor, "answer", never_answered)
    then = f"""
for number in [*range(64), 0, *range(64, 79)]:
    ask(number)
sys.stdout.flush()
answers = [json.loads(sys.stdin.readline())["response"]["response"] for _ in range(16)]
said = [answer["hookSpecificOutput"]["permissionDecision"] for answer in answers]
print(json.dumps({{**{RESULT!r}, "result": " ".join(said)}}))
"""
    async with claude_harness(tmp_path, {}, options=pretending(ASKING + then)) as harness:
        reply = await harness.ask("anything")
    assert reply.text.split() == ["deny"] * 16


async def test_a_program_that_asks_and_does_not_read_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClaudeDoor, "answer", never_answered)
    monkeypatch.setattr("podium.agents.headless.claude.session.REFUSAL_SECONDS", 0.2)
    then = "for number in range(10_000): ask(number)\nimport time; time.sleep(60)"
    async with claude_harness(tmp_path, {}, options=pretending(ASKING + then)) as harness:
        error = await trouble(harness)
    assert isinstance(error, AgentLost)
    assert "has not read an answer" in str(error)
    assert error.usage is not None
    assert error.usage.turns == 1


async def test_the_exchanges_of_a_turn_are_counted_also_when_it_fails(tmp_path: Path) -> None:
    work = [{"run": "ls", "usage": {"input": 1000, "output": 10}}] * 2
    async with claude_harness(
        tmp_path, {"works": [*work, "Done."], "fail": [*work, {"status": 429, "retry_after": 99}]}
    ) as harness:
        reply = await harness.ask("works")
        error = await trouble(harness, step_key="work#1")
    assert reply.usage.turns == 3
    assert isinstance(error, RateLimited)
    assert error.usage is not None
    assert (error.usage.turns, error.usage.input_tokens) == (2, 2000)


async def test_a_call_in_doubt_does_not_hide_what_the_turn_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def doubtful(self: HookServer, *args: Any, **given: Any) -> AsyncIterator[Any]:
        async with opened(self, *args, **given) as door:
            yield door
        raise CallInDoubt("run_1:work#0:x.0", "run_command")

    # A crash between an act and its record cannot be had on demand.
    opened = HookServer.open
    monkeypatch.setattr(HookServer, "open", doubtful)
    payload = {"text": "Hello.", "usage": {"input": 1000, "output": 20}}
    async with claude_harness(tmp_path, {"hello": [payload]}) as harness:
        error = await trouble(harness, "hello")
    assert isinstance(error, CallInDoubt)
    assert error.usage is not None
    assert error.usage.input_tokens == 1000


async def test_a_program_that_could_not_be_started_has_used_nothing(tmp_path: Path) -> None:
    async with claude_harness(tmp_path, {}, options={"command": ("claude-nowhere",)}) as harness:
        error = await trouble(harness)
    assert error.usage is not None
    assert (error.usage.turns, error.usage.complete) == (0, True)


async def test_every_line_of_the_transcript_is_json(tmp_path: Path) -> None:
    ask = {"type": "control_request", "request_id": "q", "request": {"subtype": "mcp_message"}}
    then = (
        f"print('noise', flush=True); print({json.dumps(ask)!r}, flush=True)\n"
        f"sys.stdin.readline(); print({json.dumps(RESULT)!r})"
    )
    async with claude_harness(tmp_path, {}, options=pretending(then)) as harness:
        await harness.ask("anything")
        kept = [json.loads(line) for line in harness.transcripts.transcripts[0].lines]
    assert {"printed": "noise"} in kept
    assert [line["sent"]["type"] for line in kept if "sent" in line] == ["control_response"]


@pytest.mark.parametrize(
    ("given", "output_text"),
    [
        ({"command": "make test", "description": "run it"}, "Bash make test"),
        ({"command": f"echo a {'k' * 300}"}, "Bash echo a …"),
        ({"command": 7}, "Bash"),
        ("nonsense", "Bash"),
    ],
)
def test_progress_says_what_a_tool_is_used_on_and_cuts_between_words(
    given: object, output_text: str
) -> None:
    stream = ClaudeStream(FixedClock(NOON))
    lines: list[str] = []
    stream.notify = lambda kind, text: lines.append(text)
    use = {"type": "tool_use", "name": "Bash", "input": given}
    stream.take({"type": "assistant", "message": {"content": [use]}})
    assert lines == [output_text]
