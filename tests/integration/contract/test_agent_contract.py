"""Contract of every agent, whatever implements it: real processes and the fake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.core.decisions import Effect
from podium.core.errors import AgentLost, TimedOut
from podium.core.events import AgentProgressed, ApprovalRequested, ToolCompleted, ToolRefused
from podium.ports import Agent
from podium.testing import retry_until
from tests.integration.contract.agents import (
    NAME,
    PROCESS_STAGES,
    STAGES,
    ProcessStage,
    Stage,
    harness_that,
    processes_in,
    turn_in,
)
from tests.integration.sandbox.door_harness import RealDoorHarness

StageOf = Callable[[RealDoorHarness], Stage]
ProcessStageOf = Callable[[RealDoorHarness], ProcessStage]

every_agent = pytest.mark.parametrize("stage_of", STAGES)
every_process = pytest.mark.parametrize("stage_of", PROCESS_STAGES)


async def completed(harness: RealDoorHarness) -> list[ToolCompleted]:
    return [event for event in await harness.events() if isinstance(event, ToolCompleted)]


@every_agent
async def test_a_turn_gives_a_reply_that_is_signed(stage_of: StageOf, tmp_path: Path) -> None:
    agent = stage_of(harness_that(Effect.DENY)).saying("hello\nwörld")
    reply = await agent.ask(turn_in(tmp_path))
    assert (reply.text, reply.agent, agent.name) == ("hello\nwörld", NAME, NAME)
    assert reply.waiting_approvals == ()


@every_agent
async def test_a_call_goes_through_the_door_under_the_agents_name(
    stage_of: StageOf, tmp_path: Path
) -> None:
    harness = harness_that(Effect.ALLOW)
    reply = await stage_of(harness).calling("echo", a=1).ask(turn_in(tmp_path))
    assert reply.text == "done"
    (call,) = harness.gate.judged
    assert (call.agent, call.role, call.arguments) == (NAME, "tester", {"a": 1})
    assert (call.run_id, call.step_key) == ("run_1", "ask#0")
    (done,) = await completed(harness)
    assert (done.call, done.result) == (call.key, {"echo": {"a": 1}})


@every_agent
async def test_a_denied_call_is_not_performed_and_the_turn_goes_on(
    stage_of: StageOf, tmp_path: Path
) -> None:
    harness = harness_that(Effect.DENY)
    reply = await stage_of(harness).calling("echo").ask(turn_in(tmp_path))
    assert reply.text == "done"
    assert await completed(harness) == []


@every_agent
async def test_a_tool_the_turn_does_not_name_is_refused(stage_of: StageOf, tmp_path: Path) -> None:
    harness = harness_that(Effect.ALLOW)
    await stage_of(harness).calling("echo").ask(turn_in(tmp_path, tools=("run_command",)))
    assert harness.gate.judged == []
    # A slow turn tells of its progress as well.
    types = [type(event) for event in await harness.events()]
    assert [kind for kind in types if kind is not AgentProgressed] == [ToolRefused]


@every_agent
async def test_a_call_that_waits_for_a_person_is_reported(
    stage_of: StageOf, tmp_path: Path
) -> None:
    harness = harness_that(Effect.ASK)
    reply = await stage_of(harness).calling("echo").ask(turn_in(tmp_path))
    asked = [event for event in await harness.events() if isinstance(event, ApprovalRequested)]
    assert len(asked) == 1
    assert reply.waiting_approvals == (asked[0].approval_id,)
    assert await completed(harness) == []


@every_agent
async def test_an_agent_that_goes_away_is_lost(stage_of: StageOf, tmp_path: Path) -> None:
    with pytest.raises(AgentLost):
        await stage_of(harness_that(Effect.ALLOW)).lost().ask(turn_in(tmp_path))


@every_agent
async def test_a_turn_ends_with_its_seconds_and_leaves_no_process(
    stage_of: StageOf, tmp_path: Path
) -> None:
    agent = stage_of(harness_that(Effect.ALLOW)).hanging()
    with pytest.raises(TimedOut):
        await agent.ask(turn_in(tmp_path, seconds=0.3))
    assert processes_in(tmp_path) == set()


@every_agent
async def test_a_cancelled_turn_hands_the_cancellation_on_and_leaves_no_process(
    stage_of: StageOf, tmp_path: Path
) -> None:
    harness = harness_that(Effect.ALLOW)
    asking = await _begun(stage_of(harness).hanging(), harness, tmp_path)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert processes_in(tmp_path) == set()


@every_process
async def test_an_agent_works_in_its_workspace(stage_of: ProcessStageOf, tmp_path: Path) -> None:
    harness = harness_that(Effect.ALLOW)
    asking = await _begun(stage_of(harness).hanging(), harness, tmp_path)
    there = processes_in(tmp_path)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert len(there) >= 2  # itself and its child


async def _begun(agent: Agent, harness: RealDoorHarness, folder: Path) -> asyncio.Task[object]:
    """A turn that has made its call and hangs."""
    asking: asyncio.Task[object] = asyncio.create_task(agent.ask(turn_in(folder)))
    await retry_until(lambda: completed(harness))
    return asking


@every_process
async def test_an_agent_sees_an_allow_listed_environment_only(
    stage_of: ProcessStageOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "not-for-agents-123456")
    monkeypatch.setenv("HARMLESS_WORD", "not for agents either")
    reply = await stage_of(harness_that(Effect.DENY)).showing_environment().ask(turn_in(tmp_path))
    shown = dict(line.partition("=")[::2] for line in reply.text.splitlines())
    assert {"PATH", "PODIUM_DOOR", "PODIUM_DOOR_TOKEN"} <= set(shown)
    assert not {"MY_API_TOKEN", "HARMLESS_WORD"} & set(shown)
    assert "not-for-agents-123456" not in reply.text
