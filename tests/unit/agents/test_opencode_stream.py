"""Messages of opencode and its plugin, from recorded lines, and their effect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from podium.agents.headless.opencode.agent import error_at_end, error_of
from podium.agents.headless.opencode.stream import OpencodeStream, Patience, Spending
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BudgetSpent,
    ContextOverflow,
    RateLimited,
    TimedOut,
)
from podium.core.processes import ProcessExit
from podium.core.turns import TurnLimits

NOW = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
READY = '{"podium":{"kind":"ready"}}'
STEP_START = (
    '{"type":"step_start","timestamp":1794727487504,"sessionID":"ses_1","part":{"id":"prt_1",'
    '"messageID":"msg_1","sessionID":"ses_1","type":"step-start"}}'
)
TEXT = (
    '{"type":"text","timestamp":1794727423811,"sessionID":"ses_1","part":{"id":"prt_2","messageID":"msg_1",'
    '"sessionID":"ses_1","type":"text","text":"hello there","time":{"start":1794727423773,"end":1794727423783}}}'
)
STEP_FINISH = (
    '{"type":"step_finish","timestamp":1794727423811,"sessionID":"ses_1","part":{"id":"prt_3","reason":"stop",'
    '"messageID":"msg_1","sessionID":"ses_1","type":"step-finish","tokens":{"total":2289,"input":2277,"output":2,'
    '"reasoning":3,"cache":{"write":4,"read":6}},"cost":0.25}}'
)
USAGE = (
    '{"podium":{"kind":"usage","part":"prt_3","tokens":{"total":2289,"input":2277,"output":2,"reasoning":3,'
    '"cache":{"write":4,"read":6}},"cost":0.25}}'
)
OVERFLOW = (
    '{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"ContextOverflowError","data":{"message":'
    '"This model\'s maximum context length is 128000 tokens."}}}'
)


class Harness:
    """A stream, and what was told on the way."""

    def __init__(self, *lines: str, retries: int = 2, spending: Spending | None = None) -> None:
        self.messages: list[tuple[str, str]] = []
        self.stream = OpencodeStream(
            "coder",
            Patience(retries, longest_wait_seconds=15.0),
            lambda kind, text: self.messages.append((kind, text)),
            lambda: NOW,
            spending=spending or Spending("coder"),
            started=True,
        )
        self.settled = [done for line in lines for done in self.stream.hear(line)]


def relayed(**record: Any) -> str:
    return json.dumps({"podium": record})


def tool(status: str, **more: Any) -> str:
    return relayed(**{"kind": "tool", "call": "call_1", "tool": "bash", "status": status} | more)


def test_a_plain_answer_is_read_with_its_session_and_usage() -> None:
    harness = Harness(READY, USAGE, STEP_START, TEXT, STEP_FINISH)
    assert (harness.stream.text, harness.stream.session) == ("hello there", "ses_1")
    assert harness.messages == [("text", "hello there\n")]
    usage = harness.stream.usage(1.5)
    # Counted once, although it came twice.
    assert (usage.input_tokens, usage.output_tokens, usage.usd) == (2287, 5, 0.25)
    assert (usage.turns, usage.seconds, usage.complete) == (1, 1.5, True)
    assert error_at_end("coder", harness.stream, ProcessExit(exit_code=0), NOW) is None


def test_only_the_words_of_the_last_message_are_the_answer() -> None:
    later = [line.replace("msg_1", "msg_2") for line in (STEP_START, TEXT, STEP_FINISH)]
    on_the_way = TEXT.replace("hello there", "let me look")
    harness = Harness(READY, STEP_START, on_the_way, STEP_FINISH, *later)
    assert harness.stream.text == "hello there"


def test_text_reported_piece_by_piece_is_not_reported_again() -> None:
    pieces = [relayed(kind="delta", text=piece) for piece in ("hello ", "there")]
    harness = Harness(READY, *pieces, STEP_START, TEXT, STEP_FINISH)
    assert harness.messages == [("text", "hello "), ("text", "there")]


def step(part: str, *, read: int = 100, cached: int = 0, reason: str = "tool-calls") -> str:
    tokens = {"input": read, "output": 10, "reasoning": 0, "cache": {"read": cached, "write": 0}}
    return relayed(kind="usage", part=part, reason=reason, tokens=tokens, cost=0)


def test_every_step_is_an_exchange_with_the_model() -> None:
    harness = Harness(
        READY, step("prt_1"), step("prt_2"), step("prt_2"), step("prt_3", reason="stop")
    )
    assert harness.stream.usage(0.0).turns == 3


def test_what_came_from_a_cache_is_not_paid_for_as_fresh() -> None:
    fresh = Harness(step("prt_1", read=100_000), spending=Spending("coder", "podium/gpt-5"))
    cached = Harness(
        step("prt_1", read=0, cached=100_000), spending=Spending("coder", "openai/gpt-5")
    )
    one, other = fresh.stream.usage(0.0), cached.stream.usage(0.0)
    assert one.input_tokens == other.input_tokens == 100_000
    assert 0 < other.usd < one.usd / 2
    assert one.complete
    assert other.complete


def test_a_model_that_was_not_chosen_is_learnt_from_what_it_says() -> None:
    output = relayed(kind="model", model="anthropic/claude-sonnet-4-5")
    later = relayed(kind="model", model="other/small")
    spending = Spending("coder")
    used = Harness(READY, output, later, step("prt_1"), spending=spending).stream.usage(0.0)
    assert spending.model == "anthropic/claude-sonnet-4-5"
    assert used.usd > 0
    chosen = Spending("coder", "gpt-5")
    Harness(READY, output, spending=chosen)
    assert chosen.model == "gpt-5"


@pytest.mark.parametrize(
    ("limits", "measure"),
    [
        (TurnLimits(tokens=200), "tokens"),
        (TurnLimits(usd=0.0004), "usd"),
        (TurnLimits(turns=2), "turns"),
    ],
)
def test_a_turn_that_would_go_on_beyond_a_limit_is_stopped(
    limits: TurnLimits, measure: str
) -> None:
    harness = Harness(READY, step("prt_1"), spending=Spending("coder", "gpt-5", limits))
    with pytest.raises(BudgetSpent, match="raise the limit") as caught:
        harness.stream.hear(step("prt_2"))
    assert (caught.value.scope, caught.value.measure) == ("step", measure)
    # An answer that has come is not thrown away.
    done = Harness(step("p1"), step("p2", reason="stop"), spending=Spending("x", "gpt-5", limits))
    assert done.stream.usage(0.0).turns == 2


def test_a_limit_of_money_without_a_price_is_warned_of() -> None:
    spending = Spending("coder", "my-own-model", TurnLimits(usd=1.0))
    Harness(step("prt_1"), spending=spending)
    (warning,) = spending.warnings
    assert "my-own-model" in warning
    assert Spending("coder", "my-own-model").warnings == ()


def test_it_may_be_silent_when_it_waits_for_an_approval() -> None:
    for reason in ("content-filter", "tool-calls", "unknown"):
        stream = Harness(READY, STEP_START, STEP_FINISH.replace('"stop"', f'"{reason}"')).stream
        assert error_at_end("coder", stream, ProcessExit(exit_code=0), NOW) is not None
        assert error_at_end("coder", stream, ProcessExit(exit_code=0), NOW, ("ap_1",)) is None


def test_a_step_before_the_plugin_is_there_ends_the_turn() -> None:
    with pytest.raises(AgentRejected, match="did not load Podium's plugin"):
        Harness(STEP_START)


def test_a_tool_is_at_work_until_it_is_settled() -> None:
    harness = Harness(tool("pending"), tool("running"))
    assert (harness.stream.running, harness.messages) == ({"call_1"}, [("tool", "bash")])
    (done,) = harness.stream.hear(tool("completed", output="hi\n", exit=0))
    assert (done.ref, done.ok, done.result["output"]) == ("call_1", True, "hi\n")
    assert harness.stream.running == set()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (tool("completed", exit=7), "exit code 7"),
        (tool("error", error="podium: denied"), "podium: denied"),
        (tool("made-up"), "exit code None"),
    ],
)
def test_a_tool_that_did_not_do_it_is_settled_as_failed(line: str, error: str) -> None:
    (done,) = Harness(line).settled
    assert (done.ok, done.error) == (False, error)


def test_patch_is_settled_for_every_one_of_its_files() -> None:
    harness = Harness(tool("completed", tool="apply_patch", files=3))
    assert [done.ref for done in harness.settled] == ["call_1", "call_1#1", "call_1#2"]


def retry(message: str, attempt: int = 1, wait_seconds: float = 2.0) -> str:
    timestamp = NOW + timedelta(seconds=wait_seconds)
    return relayed(
        kind="retry",
        type="retry",
        attempt=attempt,
        message=message,
        next=int(timestamp.timestamp() * 1000),
    )


def test_few_retries_are_reported_and_one_too_many_is_an_outage() -> None:
    harness = Harness(
        retry("The server is overloaded."), retry("The server is overloaded.", attempt=2)
    )
    assert harness.messages[0] == ("retry", "try 2: The server is overloaded.")
    with pytest.raises(AgentUnavailable, match="overloaded"):
        harness.stream.hear(retry("The server is overloaded.", attempt=3))


def test_a_limit_with_a_long_wait_says_until_when() -> None:
    with pytest.raises(RateLimited) as caught:
        Harness(retry("Rate limit reached for requests.", wait_seconds=90))
    assert caught.value.retry_at == NOW + timedelta(seconds=90)


def test_a_long_wait_for_something_else_is_an_outage() -> None:
    with pytest.raises(AgentUnavailable):
        Harness(retry("Cannot connect to API", wait_seconds=90))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "not json",
        "{",
        "[]",
        "null",
        '{"type":5}',
        '{"type":"text"}',
        '{"type":"text","part":[]}',
        '{"type":"text","part":{"text":5}}',
        '{"type":"step_finish","part":null}',
        '{"podium":5}',
        '{"podium":{}}',
        '{"podium":{"kind":"tool"}}',
        '{"podium":{"kind":"retry","attempt":"many","next":"soon"}}',
        '{"podium":{"kind":"retry","next":1e300}}',
        '{"podium":{"kind":"usage","part":"p","tokens":{"input":-1,"output":1e300,"cache":7},"cost":"much"}}',
        '{"sessionID":7}',
        '{"a":' * 5_000,
        "\ufffd" * 100,
    ],
)
def test_lines_that_are_no_records_are_passed_over(line: str) -> None:
    stream = Harness(READY, line).stream
    assert (stream.text, stream.session, stream.failure) == ("", None, None)
    used = stream.usage(1.0)
    assert (used.input_tokens, used.output_tokens, used.usd) == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ({"name": "APIError", "data": {"message": "no", "statusCode": 401}}, AgentNotLoggedIn),
        ({"name": "ProviderAuthError", "data": {"message": "no key"}}, AgentNotLoggedIn),
        ({"name": "APIError", "data": {"message": "bad", "statusCode": 400}}, AgentRejected),
        ({"name": "APIError", "data": {"message": "bad", "statusCode": 503}}, AgentUnavailable),
        ({"name": "APIError", "data": {"message": "refused"}}, AgentUnavailable),
        ({"name": "ContextOverflowError", "data": {"message": "long"}}, ContextOverflow),
        ({"name": "ContentFilterError", "data": {"message": "blocked"}}, AgentRefused),
        ({"name": "ProviderModelNotFoundError", "data": {}}, AgentRejected),
        ({"name": "UnknownError", "data": {"message": "boom"}}, AgentLost),
        ({"name": 7, "data": 7}, AgentLost),
        ({}, AgentLost),
    ],
)
def test_every_failure_it_names_is_one_error(failure: dict[str, Any], kind: type) -> None:
    assert type(error_of("coder", failure, NOW)) is kind


def test_a_limit_by_status_takes_the_time_from_the_header() -> None:
    data = {"message": "slow down", "statusCode": 429, "responseHeaders": {"retry-after": "30"}}
    trouble = error_of("coder", {"name": "APIError", "data": data}, NOW)
    assert isinstance(trouble, RateLimited)
    assert trouble.retry_at == NOW + timedelta(seconds=30)


ENDS: Mapping[str, tuple[list[str], ProcessExit, type]] = {
    "nothing at all": ([READY], ProcessExit(exit_code=0), AgentLost),
    "an unfinished step": ([READY, STEP_START, TEXT], ProcessExit(exit_code=0), AgentLost),
    "a step for its tools": (
        [READY, STEP_START, STEP_FINISH.replace('"stop"', '"tool-calls"')],
        ProcessExit(exit_code=0),
        AgentLost,
    ),
    "an exit that is none": ([READY, STEP_START, STEP_FINISH], ProcessExit(exit_code=1), AgentLost),
    "a signal": (
        [READY, STEP_START, STEP_FINISH],
        ProcessExit(exit_code=None, signal=9),
        AgentLost,
    ),
    "its time": (
        [READY, STEP_START, STEP_FINISH],
        ProcessExit(exit_code=0, timed_out=True),
        TimedOut,
    ),
    "an error after an answer": (
        [READY, STEP_START, TEXT, STEP_FINISH, OVERFLOW],
        ProcessExit(exit_code=1),
        ContextOverflow,
    ),
    "a filter": (
        [READY, STEP_START, STEP_FINISH.replace('"stop"', '"content-filter"')],
        ProcessExit(exit_code=0),
        AgentRefused,
    ),
    "a session that is gone": (
        [],
        ProcessExit(exit_code=1, stderr=b"Error: Session not found\n"),
        AgentRejected,
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_end_that_is_no_answer_is_an_error(end: str) -> None:
    lines, ended, kind = ENDS[end]
    assert type(error_at_end("coder", Harness(*lines).stream, ended, NOW)) is kind


def test_a_command_without_an_exit_code_is_not_called_done() -> None:
    harness = Harness(tool("running"), tool("completed", exit=None, output="fine"))
    assert (harness.settled, harness.stream.running) == ([], set())


def test_the_plugin_says_what_it_is_about_to_ask_for() -> None:
    harness = Harness()
    messages: list[str] = []
    harness.stream.expect, harness.stream.expect_no_more = (
        messages.append,
        lambda use: messages.append(f"-{use}"),
    )
    for kind in ("asking", "asked"):
        harness.stream.hear(relayed(kind=kind, call="call_1"))
    assert messages == ["call_1", "-call_1"]
