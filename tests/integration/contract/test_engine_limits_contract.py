"""Engines and what is more than a record may hold: the run ends, and says why."""

from __future__ import annotations

from typing import Any

import pytest

from podium.core.errors import BadInput, StepFailed
from podium.core.record_limits import MAX_JSON
from podium.core.work import RunStatus
from podium.engine import FlowDefinition
from podium.ports import FlowContext, StepContext
from tests.integration.contract.engines import EngineRoom

HEAVY = "word " * (MAX_JSON // 4)


async def test_an_output_that_weighs_too_much_is_a_failed_step(room: EngineRoom) -> None:
    async def body(ctx: FlowContext, input: Any) -> str:
        async def work(step: StepContext) -> str:
            return HEAVY

        with pytest.raises(StepFailed, match="put its content into a file"):
            await ctx.step("work", work)
        return "went on"

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    assert (await engine.finish(run.id)).result == "went on"


@pytest.mark.parametrize("raises", [False, True])
async def test_a_run_that_ends_with_too_much_fails(room: EngineRoom, raises: bool) -> None:
    async def body(ctx: FlowContext, input: Any) -> str:
        if raises:
            raise RuntimeError(HEAVY)
        return HEAVY

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    ended = await engine.finish(run.id)
    assert ended.status is RunStatus.FAILED
    assert ended.failure is not None
    assert ended.failure.kind == ("RuntimeError" if raises else "BadInput")
    assert len(ended.failure.message) < 30_000


async def test_a_signal_that_weighs_too_much_is_refused_and_the_run_goes_on(
    room: EngineRoom,
) -> None:
    async def body(ctx: FlowContext, input: Any) -> Any:
        taken = await ctx.wait("go")
        return taken and taken.payload

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    with pytest.raises(BadInput, match=r"this signal has .* MB of JSON"):
        await engine.signal(run.id, "go", HEAVY)
    await engine.signal(run.id, "go", "little")
    assert (await engine.finish(run.id)).result == "little"
