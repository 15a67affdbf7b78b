"""Contract of every `Engine`: waiting for signals, for children and for time."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from podium.core.decisions import ApprovalStatus
from podium.core.errors import NotPossibleNow, TimedOut
from podium.core.work import QueueSpec, RunStatus
from podium.engine import FlowDefinition
from podium.ports import FlowContext, StepContext
from podium.testing import FixedClock, retry_until
from tests.integration.contract.engines import EngineRoom
from tests.unit.contract.nouns import an_approval, new_id

HOUR = 3600.0


async def ask(ctx: FlowContext, input: Any) -> Any:
    answer = await ctx.wait("answer")
    return answer and [answer.payload, answer.sent_by]


async def ask_for_an_hour(ctx: FlowContext, input: Any) -> Any:
    answer = await ctx.wait("answer", seconds=HOUR)
    return "too late" if answer is None else answer.payload


ASK = FlowDefinition("ask", ask)
HURRY = FlowDefinition("hurry", ask_for_an_hour)


async def test_a_wait_gets_a_signal_sent_while_it_waits(room: EngineRoom) -> None:
    engine, other = await room.open(ASK), await room.open()
    run = await engine.start("ask")
    waiting = await engine.finish(run.id, stop_when_waiting=True)
    assert (waiting.status, waiting.waiting_for) == (RunStatus.WAITING, "answer")
    await other.signal(run.id, "answer", {"n": 1}, by="ada")
    ended = await engine.finish(run.id)
    assert (ended.result, ended.waiting_for) == ([{"n": 1}, "ada"], None)


async def test_a_wait_gets_a_signal_sent_before_it_began(room: EngineRoom) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    async def body(ctx: FlowContext, input: Any) -> Any:
        async def work(step: StepContext) -> None:
            began.set()
            await may_end.wait()

        await ctx.step("work", work)
        return await ask(ctx, input)

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    await asyncio.wait_for(began.wait(), 120)
    await engine.signal(run.id, "answer", "early")
    may_end.set()
    assert (await engine.finish(run.id)).result == ["early", ""]


async def test_a_wait_gets_a_signal_sent_while_nobody_hosted_the_run(room: EngineRoom) -> None:
    engine, heir = await room.open(ASK), await room.open(ASK)
    run = await engine.start("ask")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    await heir.signal(run.id, "answer", "meanwhile")
    await heir.resume(run.id)
    assert (await heir.finish(run.id)).result == ["meanwhile", ""]


async def test_a_signal_is_taken_once_even_when_the_run_is_replayed(room: EngineRoom) -> None:
    async def body(ctx: FlowContext, input: Any) -> Any:
        first = await ctx.wait("answer")
        second = await ctx.wait("answer", index=1)
        return [first and first.payload, second and second.payload]

    flow = FlowDefinition("story", body)
    engine = await room.open(flow)
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.signal(run.id, "answer", 1)

    async def first_taken() -> bool:
        types = [event.body.type for event in await room.events(run.id)]
        return types.count("signal_received") == 1 and types.count("run_waiting") == 2

    await retry_until(first_taken)
    await engine.abandon()
    heir = await room.open(flow)
    await heir.resume(run.id)
    await heir.signal(run.id, "answer", 2)
    assert (await heir.finish(run.id)).result == [1, 2]


async def test_a_signal_nobody_waits_for_does_not_disturb_a_waiting_run(room: EngineRoom) -> None:
    engine = await room.open(ASK)
    run = await engine.start("ask")
    await room.until(run.id, RunStatus.WAITING)
    await engine.signal(run.id, "question", "?")

    async def disturbed() -> bool:
        types = [event.body.type for event in await room.events(run.id)]
        return types != ["run_queued", "run_started", "run_waiting", "signal_sent"]

    with pytest.raises(TimedOut):
        await retry_until(disturbed, seconds=0.3)
    await engine.signal(run.id, "answer", "!")
    assert (await engine.finish(run.id)).result == ["!", ""]


async def test_concurrent_waits_all_get_their_own_signal(room: EngineRoom) -> None:
    async def body(ctx: FlowContext, input: Any) -> Any:
        both = await asyncio.gather(ctx.wait("left"), ctx.wait("right"))
        return [one and one.payload for one in both]

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    waiting = await engine.finish(run.id, stop_when_waiting=True)
    assert waiting.status is RunStatus.WAITING
    await engine.signal(run.id, "right", "R")
    await engine.signal(run.id, "left", "L")
    assert (await engine.finish(run.id)).result == ["L", "R"]


async def test_a_run_with_a_branch_at_work_does_not_count_as_waiting(room: EngineRoom) -> None:
    working, may_end = asyncio.Event(), asyncio.Event()

    async def body(ctx: FlowContext, input: Any) -> Any:
        async def work(step: StepContext) -> str:
            working.set()
            await may_end.wait()
            return "done"

        return (await asyncio.gather(ctx.step("work", work), ctx.wait("go")))[0]

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    await asyncio.wait_for(working.wait(), 120)
    assert (await room.run(run.id)).status is RunStatus.RUNNING
    may_end.set()
    await room.until(run.id, RunStatus.WAITING)
    await engine.signal(run.id, "go")
    assert (await engine.finish(run.id)).result == "done"


async def test_an_ended_run_takes_no_signals(room: EngineRoom) -> None:
    engine = await room.open(ASK)
    run = await engine.start("ask")
    await engine.signal(run.id, "answer")
    await engine.finish(run.id)
    with pytest.raises(NotPossibleNow, match="succeeded"):
        await engine.signal(run.id, "answer")


async def test_a_wait_ends_with_nothing_when_its_deadline_passes(
    room: EngineRoom, clock: FixedClock
) -> None:
    engine = await room.open(HURRY)
    run = await engine.start("hurry")
    waiting = await room.until(run.id, RunStatus.WAITING)
    assert waiting.wake_at == clock.now() + timedelta(seconds=HOUR)
    clock.advance(HOUR)
    assert (await engine.finish(run.id)).result == "too late"
    assert "wait_expired" in [event.body.type for event in await room.events(run.id)]


async def test_a_signal_before_the_deadline_wins(room: EngineRoom, clock: FixedClock) -> None:
    engine = await room.open(HURRY)
    run = await engine.start("hurry")
    await room.until(run.id, RunStatus.WAITING)
    clock.advance(HOUR - 1)
    await engine.signal(run.id, "answer", "just in time")
    assert (await engine.finish(run.id)).result == "just in time"


async def test_a_deadline_is_fixed_when_the_wait_begins_and_survives_restarts(
    room: EngineRoom, clock: FixedClock
) -> None:
    first = await room.open(HURRY)
    run = await first.start("hurry")
    deadline = (await room.until(run.id, RunStatus.WAITING)).wake_at
    await first.abandon()

    clock.advance(HOUR / 2)
    second = await room.open(HURRY)
    await second.resume(run.id)
    assert (await room.until(run.id, RunStatus.WAITING)).wake_at == deadline
    await second.abandon()

    clock.advance(HOUR / 2)
    third = await room.open(HURRY)
    await third.resume(run.id)
    assert (await third.finish(run.id)).result == "too late"


async def test_a_wait_may_name_its_deadline_itself(room: EngineRoom, clock: FixedClock) -> None:
    midnight = clock.now() + timedelta(hours=12)

    async def body(ctx: FlowContext, input: Any) -> Any:
        return await ctx.wait("answer", until=midnight)

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    assert (await room.until(run.id, RunStatus.WAITING)).wake_at == midnight
    clock.advance(12 * HOUR)
    ended = await engine.finish(run.id)
    assert (ended.status, ended.result) == (RunStatus.SUCCEEDED, None)


async def test_sleep_survives_a_restart(room: EngineRoom, clock: FixedClock) -> None:
    async def body(ctx: FlowContext, input: Any) -> str:
        await ctx.sleep("nap", seconds=HOUR)
        return "rested"

    flow = FlowDefinition("story", body)
    engine = await room.open(flow)
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    clock.advance(HOUR)
    heir = await room.open(flow)
    await heir.resume(run.id)
    assert (await heir.finish(run.id)).result == "rested"


async def test_now_is_remembered(room: EngineRoom, clock: FixedClock) -> None:
    seen: list[datetime] = []

    async def body(ctx: FlowContext, input: Any) -> None:
        seen.append(await ctx.now("start"))
        await ctx.wait("go")
        seen.append(await ctx.now("start", index=1))

    began = clock.now()
    flow = FlowDefinition("story", body)
    engine = await room.open(flow)
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    clock.advance(HOUR)
    heir = await room.open(flow)
    await heir.resume(run.id)
    await heir.signal(run.id, "go")
    await heir.finish(run.id)
    assert seen == [began, began, began + timedelta(seconds=HOUR)]


async def nap(ctx: FlowContext, input: Any) -> Any:
    await ctx.sleep("nap", seconds=8)
    return "awake"


async def test_a_clock_set_back_does_not_lengthen_a_sleep(
    room: EngineRoom, clock: FixedClock
) -> None:
    engine = await room.open(FlowDefinition("nap", nap))
    run = await engine.start("nap")
    await room.until(run.id, RunStatus.WAITING)
    clock.set_back(HOUR)
    clock.advance(8)
    assert (await room.until(run.id, RunStatus.SUCCEEDED)).result == "awake"


async def test_a_clock_set_back_does_not_lengthen_the_sleep_of_an_unloaded_run(
    room: EngineRoom, clock: FixedClock
) -> None:
    engine = await room.open(FlowDefinition("nap", nap))
    async with engine.serve([QueueSpec(name="work")]):
        run = await engine.start("nap", queue="work")
        await room.until_nobody_hosts(run.id)
        await room.until(run.id, RunStatus.WAITING)
        await room.until_nobody_hosts(run.id)
        clock.set_back(HOUR)
        clock.advance(8)
        assert (await room.until(run.id, RunStatus.SUCCEEDED)).result == "awake"


async def test_an_approval_expires_with_the_wait_for_it_although_the_clock_was_set_back(
    room: EngineRoom, clock: FixedClock
) -> None:
    run_id, deadline = new_id("run"), clock.now() + timedelta(seconds=8)
    asked = an_approval(run_id, deadline=deadline)

    async def body(ctx: FlowContext, input: Any) -> Any:
        return await ctx.wait(f"approval:{asked.id}", until=asked.deadline)

    store = await room.store()
    await store.write(lambda tx: tx.save_approval(asked))
    engine = await room.open(FlowDefinition("asks", body))
    run = await engine.start("asks", run_id=run_id)
    await room.until(run.id, RunStatus.WAITING)
    clock.set_back(HOUR)
    clock.advance(8)
    await room.until(run.id, RunStatus.SUCCEEDED)
    known = await store.read(lambda view: view.approval(asked.id))
    assert known is not None
    assert known.status is ApprovalStatus.EXPIRED
