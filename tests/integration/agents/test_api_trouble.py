"""End of an API agent's turn when its provider does not respond as it should."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.core.decisions import Effect, Usage
from podium.core.errors import (
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
    RateLimited,
    TimedOut,
)
from podium.core.turns import TurnLimits
from podium.testing import retry_until
from podium.testing.modelserver import ModelServer
from tests.integration.agents.api_harness import (
    KEY,
    NOTE,
    TWO_PROVIDERS,
    ApiHarness,
    allowed,
    note,
    script,
)
from tests.integration.sandbox.door_harness import RealDoorHarness

pytestmark = pytest.mark.parametrize("provider", TWO_PROVIDERS)

WRONG = "sk-the-wrong-key-9876543210"


async def trouble(harness: ApiHarness, prompt: str = "SCRIPT:x", **more: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        await harness.agent.ask(harness.turn(prompt, **more))
    return caught.value


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"status": 401}, AgentNotLoggedIn),
        ({"status": 403}, AgentNotLoggedIn),
        ({"fault": "bad_key"}, AgentNotLoggedIn),
        ({"status": 400, "message": "bad field"}, AgentRejected),
        ({"status": 404}, AgentRejected),
        ({"status": 402}, RateLimited),
        ({"status": 429}, RateLimited),
        ({"fault": "context_overflow"}, ContextOverflow),
        ({"text": "I will not", "finish": "refusal"}, AgentRefused),
        ({"text": "bad wo", "finish": "safety"}, AgentRefused),
        ({"text": "abc def", "fault": "drop"}, AgentUnavailable),
        ({"text": "abc def", "fault": "truncate"}, AgentUnavailable),
        ({"text": "abc def", "fault": "invalid_stream"}, AgentUnavailable),
        ({"text": "abc def", "fault": "invalid_json"}, AgentUnavailable),
        ({"text": "abc def", "fault": "error_event", "status": 500}, AgentUnavailable),
        ({"fault": "drop_before_headers"}, AgentUnavailable),
    ],
    ids=lambda value: (
        value.get("fault") or value.get("finish") or str(value["status"])
        if isinstance(value, dict)
        else ""
    ),
)
async def test_every_trouble_has_its_error_and_is_not_asked_again(
    provider: str, tmp_path: Path, step: dict[str, Any], kind: type[PodiumError]
) -> None:
    async with ModelServer(script(x=[step, "Never said."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        error = await trouble(harness)
        assert len(server.requests) == 1
    assert type(error) is kind, error
    assert "'thinker'" in str(error)
    assert error.usage is not None
    assert (error.__cause__, error.__context__) == (None, None)
    assert harness.doors.opened == 0
    assert harness.files() == []


async def test_wrong_key_is_reported_with_its_remedy_and_shown_nowhere(
    provider: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = {"status": 401, "message": f"Incorrect API key provided: {WRONG}."}
    async with ModelServer(script(x=[echo])) as server:
        harness = ApiHarness(tmp_path, server, provider)
        harness.agent._resolve_secret = {"MODEL_KEY": WRONG}.__getitem__
        error = await trouble(harness)
        assert server.requests[0].has_key
    assert isinstance(error, AgentNotLoggedIn)
    assert "from secret://MODEL_KEY; set MODEL_KEY in Podium's environment" in str(error)
    shown = f"{error!s}{error!r}{harness.agent!r}{vars(harness.agent)!r}{harness.transcripts.text}{caplog.text}"
    assert WRONG not in shown
    assert KEY not in shown


async def test_a_good_key_is_in_no_log_either(
    provider: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with ModelServer(script(x=["Hi."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        await harness.agent.ask(harness.turn("SCRIPT:x"))
    assert caplog.text
    assert KEY not in caplog.text


async def test_missing_key_is_reported_before_anything_is_sent(
    provider: str, tmp_path: Path
) -> None:
    async with ModelServer(script(x=["Hi."])) as server:
        harness = ApiHarness(tmp_path, server, provider, env={})
        if provider == "openai":  # a server of one's own may want none
            assert (await harness.agent.ask(harness.turn("SCRIPT:x"))).text == "Hi."
            assert not server.requests[0].has_key
            return
        error = await trouble(harness)
        assert server.requests == []
    assert isinstance(error, AgentNotLoggedIn)
    assert "set `env:" in str(error)


async def test_a_rate_limit_says_when_it_is_over(provider: str, tmp_path: Path) -> None:
    step = {"status": 429, "retry_after": 3600}
    async with ModelServer(script(x=[step, "Never."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        error = await trouble(harness)
        assert len(server.requests) == 1
    assert isinstance(error, RateLimited)
    assert error.retry_at == harness.clock.now() + timedelta(hours=1)
    assert harness.pauses == []


async def test_a_short_rate_limit_is_waited_for(provider: str, tmp_path: Path) -> None:
    step = {"status": 429, "retry_after": 5}
    async with ModelServer(script(x=[step, "Now."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        reply = await harness.agent.ask(harness.turn("SCRIPT:x"))
    assert reply.text == "Now."
    assert [round(pause, 2) for pause in harness.pauses] == [5.05]
    assert harness.tool_results[0][0] == "retry"


async def test_a_rate_limit_beyond_the_turns_time_is_not_waited_for(
    provider: str, tmp_path: Path
) -> None:
    step = {"status": 429, "retry_after": 20}
    async with ModelServer(script(x=[step, "Never."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        error = await trouble(harness, limits=TurnLimits(seconds=15))
    assert isinstance(error, RateLimited)
    assert harness.pauses == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("status", [500, 502, 503, 529])
async def test_a_server_that_breaks_once_is_asked_again(
    provider: str, tmp_path: Path, status: int
) -> None:
    async with ModelServer(script(x=[{"status": status}, "Back."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        reply = await harness.agent.ask(harness.turn("SCRIPT:x"))
        assert len(server.requests) == 2
    assert reply.text == "Back."
    assert harness.pauses == [0.5]


async def test_a_server_that_stays_broken_is_asked_four_times(
    provider: str, tmp_path: Path
) -> None:
    async with ModelServer(script(x=[{"status": 500}] * 9), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        error = await trouble(harness)
        assert len(server.requests) == 4
    assert isinstance(error, AgentUnavailable)
    assert harness.pauses == [0.5, 1.0, 2.0]


async def test_usage_before_a_break_is_reported(provider: str, tmp_path: Path) -> None:
    used = {**note("one"), "usage": {"input": 70, "output": 30}}
    steps = [used, {"text": "abc def", "fault": "drop"}]
    async with ModelServer(script(x=steps), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, [allowed()], [NOTE])
        error = await trouble(harness)
    assert isinstance(error, AgentUnavailable)
    assert error.usage is not None
    assert error.usage.input_tokens >= 70
    assert error.usage.complete is False


async def test_server_that_is_down_is_reported_as_such(provider: str, tmp_path: Path) -> None:
    async with ModelServer(script(x=["Hi."])) as server:
        harness = ApiHarness(tmp_path, server, provider)
    error = await trouble(harness)
    assert isinstance(error, AgentUnavailable)
    assert f"cannot reach its model at {server.url}" in str(error)
    assert len(harness.pauses) == 3
    assert error.usage is not None
    assert error.usage.complete is True


@pytest.mark.sample(1)
async def test_a_server_that_hangs_runs_out_of_time(provider: str, tmp_path: Path) -> None:
    async with ModelServer(script(x=[{"fault": "hang"}]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        error = await trouble(harness, limits=TurnLimits(seconds=2))
    assert isinstance(error, TimedOut)
    assert error.usage is not None
    assert error.usage.complete is False
    assert harness.doors.opened == 0


async def test_a_server_that_says_nothing_for_too_long_has_gone(
    provider: str, tmp_path: Path
) -> None:
    async with ModelServer(script(x=[{"fault": "hang"}]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, options={"silence_seconds": 0.2})
        error = await trouble(harness, limits=TurnLimits(seconds=None))
    assert isinstance(error, AgentUnavailable)


async def test_cancelling_closes_the_line(provider: str, tmp_path: Path) -> None:
    gone: list[int] = []
    hang = ModelServer(
        script(x=[{"fault": "hang"}]), key=KEY, watcher=lambda seen: gone.append(seen.number)
    )
    async with hang as server:
        harness = ApiHarness(tmp_path, server, provider)
        asked = asyncio.create_task(harness.agent.ask(harness.turn("SCRIPT:x")))
        await server.wait_for_requests(1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await retry_until(lambda: gone == [1])
    assert harness.doors.opened == 0


async def test_a_tool_at_work_is_ended_with_its_turn(provider: str, tmp_path: Path) -> None:
    step = {"tools": [{"name": "hang", "arguments": {}}]}
    async with ModelServer(script(x=[step]), key=KEY) as server:
        doors = RealDoorHarness(Effect.ALLOW)
        harness = ApiHarness(tmp_path, server, provider, other_doors=doors.hook_door)
        asked = asyncio.create_task(harness.agent.ask(harness.turn("SCRIPT:x")))
        async with asyncio.timeout(120):
            await doors.hanging.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError) as ended:
            await asked
    used: Usage = vars(ended.value)["usage"]
    assert (used.input_tokens > 0, used.complete) == (True, False)
    assert "requested" not in [str(status) for status in await doors.statuses()]
