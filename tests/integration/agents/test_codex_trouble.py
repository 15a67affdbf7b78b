"""The real codex when things go wrong, and how its words for that are read."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.agents.headless.codex.errors import again_at, turn_error
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    CallInDoubt,
    ContextOverflow,
    NotPossibleNow,
    PodiumError,
    RateLimited,
    TimedOut,
)
from podium.core.turns import TurnLimits
from podium.sandbox import HookServer
from podium.testing import retry_until
from tests.integration.agents import clis
from tests.integration.agents.codex_harness import KEY, codex_harness, living
from tests.soaking import in_soak

NOW = datetime(2026, 11, 15, 7, 30, 20, tzinfo=UTC)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("step", "error"),
    [
        ({"status": 401}, AgentNotLoggedIn),
        in_soak({"status": 403}, AgentNotLoggedIn),
        ({"status": 429}, RateLimited),
        ({"status": 400}, AgentRejected),
        in_soak({"status": 404}, AgentRejected),
        ({"status": 500}, AgentUnavailable),
        in_soak({"status": 503}, AgentUnavailable),
        in_soak({"fault": "drop"}, AgentUnavailable),
        in_soak({"fault": "drop_before_headers"}, AgentUnavailable),
        ({"text": "Half of it", "fault": "truncate"}, AgentUnavailable),
        in_soak({"fault": "invalid_stream"}, AgentUnavailable),
        ({"fault": "context_overflow"}, ContextOverflow),
        ({"text": "No.", "finish": "safety"}, AgentRefused),
        in_soak({"text": "No.", "finish": "refusal"}, AgentRefused),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else value.__name__,
)
async def test_trouble_of_the_provider_is_one_error_of_the_tree(
    tmp_path: Path, step: dict[str, Any], error: type[PodiumError]
) -> None:
    async with codex_harness(tmp_path, {"fails": [step]}) as harness:
        with pytest.raises(error) as raised:
            await harness.ask("fails")
    assert type(raised.value) is error
    assert raised.value.usage is not None
    assert KEY not in str(raised.value)


async def test_a_wrong_key_is_not_logged_in(tmp_path: Path) -> None:
    wrong = {"env": {"OPENAI_API_KEY": "sk-wrong"}}
    async with codex_harness(tmp_path, {"one": ["Yes."]}, options=wrong) as harness:
        with pytest.raises(AgentNotLoggedIn, match="codex login"):
            await harness.ask("one")


async def test_a_server_that_is_down_is_given_up_on(tmp_path: Path) -> None:
    """Left to itself codex tries for ever."""
    down = {"base_url": "http://127.0.0.1:9"}
    async with codex_harness(tmp_path, {"one": ["Yes."]}, options=down) as harness:
        with pytest.raises(AgentUnavailable):
            await harness.ask("one")


async def test_codex_gets_over_a_short_outage_by_itself(tmp_path: Path) -> None:
    rule = {"marker": "shaky", "each_time": True, "steps": [{"fault": "drop"}, {"text": "Yes."}]}
    async with codex_harness(tmp_path, {}, script={"rules": [rule]}) as harness:
        reply = await harness.ask("shaky")
    assert reply.text == "Yes."
    assert len(harness.server.requests) == 2


async def test_what_was_used_before_the_trouble_is_known(tmp_path: Path) -> None:
    steps = {"fails": [{"run": "true", "usage": {"input": 1000, "output": 10}}, {"status": 500}]}
    async with codex_harness(tmp_path, steps) as harness:
        with pytest.raises(AgentUnavailable) as raised:
            await harness.ask("fails")
    assert raised.value.usage is not None
    assert raised.value.usage.input_tokens == 1000


async def test_a_hanging_model_is_timed_out_and_no_process_is_left(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"hangs": [{"fault": "hang"}]}) as harness:
        with pytest.raises(TimedOut):
            await harness.ask("hangs", limits=TurnLimits(seconds=2.0))
    assert living(tmp_path) == []


async def test_a_cancelled_turn_leaves_no_process_behind(tmp_path: Path) -> None:
    started = "touch started && setsid sleep 600 & sleep 600"
    async with codex_harness(tmp_path, {"works": [{"run": started}, "Done."]}) as harness:
        asking = asyncio.create_task(harness.ask("works"))
        await retry_until((harness.workspace / "started").exists)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await asking
    assert vars(raised.value)["usage"].turns == 1
    assert living(tmp_path) == []
    # Codex's sandbox puts up empty folders, and takes them down only when it ends by itself.
    assert sorted(os.listdir(harness.workspace)) == [".git", "README", "started"]
    assert not (harness.workspace / ".git/.codex").exists()


async def test_a_codex_that_dies_is_lost(tmp_path: Path) -> None:
    program = tmp_path / "codex-that-dies"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = app-server ] || exec {clis.codex()} "$@"\n'
        'read line; echo "out of memory" >&2; kill -9 $$\n'
    )
    program.chmod(0o755)
    options = {"command": (str(program),)}
    async with codex_harness(tmp_path, {"one": ["Yes."]}, options=options) as harness:
        with pytest.raises(AgentLost, match=r"signal 9.*out of memory") as raised:
            await harness.ask("one")
    assert type(raised.value) is AgentLost


async def test_a_codex_that_talks_nonsense_is_lost(tmp_path: Path) -> None:
    program = tmp_path / "codex-that-babbles"
    program.write_text('#!/bin/sh\nhead -c 3000000 /dev/urandom\necho; echo "[1,2"; exit 0\n')
    program.chmod(0o755)
    options = {"command": (str(program),), "options": {"sandbox": "workspace-write"}}
    async with codex_harness(tmp_path, {"one": ["Yes."]}, options=options) as harness:
        with pytest.raises(AgentLost, match="exit 0"):
            await harness.ask("one")


async def test_a_turn_without_a_word_is_no_success(tmp_path: Path) -> None:
    async with codex_harness(tmp_path, {"silent": [{"run": "true"}, {"text": ""}]}) as harness:
        with pytest.raises(AgentLost, match="without an answer"):
            await harness.ask("silent")


@pytest.mark.parametrize("last", [{"text": ""}, {"thinking": "Hm."}])
async def test_a_turn_that_waits_for_a_person_may_end_without_a_word(
    tmp_path: Path, last: dict[str, Any]
) -> None:
    steps = {"silent": [{"run": "touch ran.marker"}, last]}
    async with codex_harness(tmp_path, steps, asks=["ran.marker"]) as harness:
        reply = await harness.ask("silent")
    assert reply.text == ""
    assert len(reply.waiting_approvals) == 1
    assert not (harness.workspace / "ran.marker").exists()


def followed_by(tmp_path: Path, afterwards: str) -> dict[str, Any]:
    """Options for a codex whose program does something else once the app server is done."""
    program = tmp_path / "codex-and-more"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = app-server ] || exec {clis.codex()} "$@"\n'
        f'{clis.codex()} "$@"\n{afterwards}\n'
    )
    program.chmod(0o755)
    return {"command": (str(program),), "options": {"sandbox": "workspace-write"}}


@pytest.mark.parametrize(
    ("afterwards", "words"), [("exit 3", "exit 3"), ("kill -SEGV $$", "signal 11")]
)
async def test_an_answer_of_a_codex_that_comes_to_a_bad_end_does_not_count(
    tmp_path: Path, afterwards: str, words: str
) -> None:
    options = followed_by(tmp_path, afterwards)
    async with codex_harness(tmp_path, {"one": ["Yes."]}, options=options) as harness:
        with pytest.raises(AgentLost, match=words) as raised:
            await harness.ask("one")
    assert raised.value.usage is not None
    assert raised.value.usage.turns == 1


async def test_codex_that_does_not_exit_is_ended_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its real patience would take as long as this whole file.
    monkeypatch.setattr("podium.agents.headless.codex.agent.LAST_SECONDS", 1.0)
    options = followed_by(tmp_path, "sleep 600")
    async with codex_harness(tmp_path, {"one": ["Yes."]}, options=options) as harness:
        reply = await harness.ask("one")
    assert reply.text == "Yes."
    assert any("did not exit by itself" in warning for warning in reply.warnings)
    assert living(tmp_path) == []


PRETENDED = """
import json, os, sys
answers = json.loads(sys.argv[1].replace("HOOKS", os.environ.get("CODEX_HOME", "") + "/hooks.json"))
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"id": asked["id"], "result": answers.get(asked["method"])}), flush=True)
"""
HOOK: dict[str, Any] = {
    "sourcePath": "HOOKS",
    "eventName": "preToolUse",
    "handlerType": "command",
    "matcher": "*",
    "trustStatus": "trusted",
    "enabled": True,
}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({}, NotPossibleNow),
        ({"hooks/list": [1]}, NotPossibleNow),
        ({"hooks/list": {"data": [None, 7, {"hooks": 3}, {"hooks": [None]}]}}, NotPossibleNow),
        ({"hooks/list": {"data": [{"hooks": [HOOK]}]}}, AgentLost),
        ({"hooks/list": {"data": [{"hooks": [HOOK]}]}, "account/read": "no"}, AgentLost),
        ({"hooks/list": {"data": [{"hooks": [HOOK]}]}, "thread/start": []}, AgentLost),
        ({"hooks/list": {"data": [{"hooks": [HOOK]}]}, "thread/start": {"thread": 7}}, AgentLost),
        (
            {"hooks/list": {"data": [{"hooks": [HOOK]}]}, "thread/start": {"thread": {"id": {}}}},
            AgentLost,
        ),
    ],
)
async def test_answers_of_any_shape_end_in_the_error_tree(
    tmp_path: Path, answers: dict[str, Any], error: type[PodiumError]
) -> None:
    words = map(shlex.quote, (sys.executable, "-c", PRETENDED, json.dumps(answers)))
    program = tmp_path / "codex-of-odd-answers"
    program.write_text(f"#!/bin/sh\nexec {' '.join(words)}\n")
    program.chmod(0o755)
    options = {"command": (str(program),), "options": {"sandbox": "workspace-write"}}
    async with codex_harness(tmp_path, {}, options=options) as harness:
        with pytest.raises(error) as raised:
            await harness.ask("one")
    assert type(raised.value) is error
    assert raised.value.usage is not None


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
    payload = {"text": "Yes.", "usage": {"input": 1000, "output": 20}}
    async with codex_harness(tmp_path, {"one": [payload]}) as harness:
        with pytest.raises(CallInDoubt) as raised:
            await harness.ask("one")
    assert raised.value.usage is not None
    assert raised.value.usage.input_tokens == 1000


async def test_a_warning_of_codex_is_no_failure(tmp_path: Path) -> None:
    async with codex_harness(
        tmp_path, {"one": ["Yes."]}, options={"model": "home-made"}
    ) as harness:
        reply = await harness.ask("one")
    assert reply.text == "Yes."
    assert any("not found" in warning for warning in reply.warnings)


async def test_homes_below_the_folder_for_temporary_files_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex makes no sandbox for commands when its home is below TMPDIR."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with codex_harness(tmp_path, {"works": [{"run": "echo it ran"}, "Done."]}) as harness:
        await harness.ask("works")
    assert "it ran" in json.dumps(harness.server.requests[-1].body["input"][-1])


async def test_a_limit_says_when_the_provider_wants_to_be_asked_again(tmp_path: Path) -> None:
    async with codex_harness(
        tmp_path, {"limited": [{"status": 429, "retry_after": 90}]}
    ) as harness:
        with pytest.raises(RateLimited) as raised:
            await harness.ask("limited", limits=TurnLimits(seconds=60))
        assert raised.value.retry_at == harness.deps.clock.now() + timedelta(seconds=90)


@pytest.mark.parametrize(
    ("words", "timestamp"),
    [
        ("try again at 8:06 AM.", datetime(2026, 11, 15, 8, 6, tzinfo=UTC)),
        ("try again at 7:30 AM.", NOW),
        ("try again at 6:15 AM.", datetime(2026, 11, 16, 6, 15, tzinfo=UTC)),
        ("try again at Jan 15th, 2027 7:59 PM.", datetime(2027, 1, 15, 19, 59, tzinfo=UTC)),
        ("try again at Foo 99th, 2027 7:59 PM.", None),
        ("try again at 27:00 AM.", None),
        ("try again later", None),
    ],
)
def test_the_end_of_a_limit_is_read_out_of_codexs_words(
    words: str, timestamp: datetime | None
) -> None:
    assert again_at(words, NOW) == timestamp


@pytest.mark.parametrize(
    ("info", "words", "error"),
    [
        ("usageLimitExceeded", "You’ve hit your usage limit. try again at 8:06 AM.", RateLimited),
        ({"responseStreamDisconnected": {}}, "rate limit exceeded: wait", RateLimited),
        ({"responseStreamDisconnected": {}}, "stream disconnected", AgentUnavailable),
        ("rateLimitExceeded", "Please try again in 11.054s.", RateLimited),
        ("unauthorized", "token expired", AgentNotLoggedIn),
        ("serverOverloaded", "at capacity", AgentUnavailable),
        ("modelNotFound", "no such model", AgentRejected),
        ("contextWindowExceeded", "ran out of room", ContextOverflow),
        ("cyberPolicy", "flagged", AgentRefused),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, "refused", AgentUnavailable),
        ({"responseStreamDisconnected": {"httpStatusCode": 502}}, "gone", AgentUnavailable),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "no", AgentNotLoggedIn),
        ("other", "Missing environment variable: `OPENAI_API_KEY`.", AgentNotLoggedIn),
        ("other", "stream disconnected before completion: x", AgentUnavailable),
        ("other", '{"error": {"message": "bad parameter"}}', AgentRejected),
        ("other", "something new", AgentLost),
        ("brandNewInVersion9", "something new", AgentLost),
        (None, "something new", AgentLost),
        ({}, "", AgentLost),
    ],
)
def test_codexs_names_for_faults(info: Any, words: str, error: type[PodiumError]) -> None:
    found = turn_error("codex", {"message": words, "codexErrorInfo": info}, NOW)
    assert type(found) is error


def test_a_limit_says_when_it_ends() -> None:
    payload = {"message": "try again at 8:06 AM.", "codexErrorInfo": "usageLimitExceeded"}
    found = turn_error("codex", payload, NOW)
    assert isinstance(found, RateLimited)
    assert found.retry_at == datetime(2026, 11, 15, 8, 6, tzinfo=UTC)


@pytest.mark.parametrize("output", [None, "words", [], {"message": 5}, {"codexErrorInfo": [1]}])
def test_an_error_of_any_shape_is_an_error(output: Any) -> None:
    assert isinstance(turn_error("codex", output, NOW), AgentLost)
