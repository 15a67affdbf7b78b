"""Contract of every `Engine`: the host of a run is one process, and another when that one dies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podium.core.errors import FlowChanged, FlowUnknown, LockHeld, NotPossibleNow
from podium.core.work import QueueSpec, RunStatus
from podium.engine import FlowDefinition
from podium.engine.ownership import require_run
from podium.ports import FlowContext, StepContext, Transaction
from podium.testing import FixedClock, retry_until
from tests.integration.contract.engines import EngineRoom, freeze


class LongFlow:
    """A flow of one long step, which notes who began and who ended it."""

    def __init__(self) -> None:
        self.began = 0
        self.ended = 0
        self.may_end = asyncio.Event()
        self.flow = FlowDefinition("desk", self.body)

    async def body(self, ctx: FlowContext, input: Any) -> str:
        return await ctx.step("work", self.work)

    async def work(self, step: StepContext) -> str:
        self.began += 1
        await self.may_end.wait()
        self.ended += 1
        return "done"


async def wait_for_go(ctx: FlowContext, input: Any) -> str:
    await ctx.wait("go")
    return "gone"


async def test_a_run_hosted_elsewhere_cannot_be_resumed_or_retried(room: EngineRoom) -> None:
    long_flow = LongFlow()
    owner, other = await room.open(long_flow.flow), await room.open(long_flow.flow)
    run = await owner.start("desk")
    await retry_until(lambda: long_flow.began)
    with pytest.raises(LockHeld, match=run.id):
        await other.resume(run.id)
    with pytest.raises(LockHeld, match=run.id):
        await other.retry(run.id)
    long_flow.may_end.set()
    assert (await other.finish(run.id)).result == "done"
    assert long_flow.began == 1


async def test_a_run_hosted_here_cannot_be_resumed_a_second_time(room: EngineRoom) -> None:
    long_flow = LongFlow()
    engine = await room.open(long_flow.flow)
    run = await engine.start("desk")
    with pytest.raises(LockHeld):
        await engine.resume(run.id)


async def test_an_ended_run_cannot_be_resumed(room: EngineRoom) -> None:
    long_flow = LongFlow()
    long_flow.may_end.set()
    engine = await room.open(long_flow.flow)
    run = await engine.start("desk")
    await engine.finish(run.id)
    with pytest.raises(NotPossibleNow, match="succeeded"):
        await engine.resume(run.id)


async def test_a_run_of_a_dead_owner_can_be_resumed_at_once(room: EngineRoom) -> None:
    long_flow = LongFlow()
    owner, heir = await room.open(long_flow.flow), await room.open(long_flow.flow)
    run = await owner.start("desk")
    await retry_until(lambda: long_flow.began)
    await owner.abandon()
    assert (await room.run(run.id)).owner is not None
    long_flow.may_end.set()
    resumed = await heir.resume(run.id)
    assert resumed.fence == run.fence + 1
    assert (await heir.finish(run.id)).result == "done"


async def test_of_engines_that_race_to_resume_one_wins(room: EngineRoom) -> None:
    long_flow = LongFlow()
    owner = await room.open(long_flow.flow)
    heirs = [await room.open(long_flow.flow) for _ in range(4)]
    run = await owner.start("desk")
    await retry_until(lambda: long_flow.began)
    await owner.abandon()
    outcomes = await asyncio.gather(
        *(heir.resume(run.id) for heir in heirs), return_exceptions=True
    )
    assert sum(isinstance(outcome, LockHeld) for outcome in outcomes) == 3
    long_flow.may_end.set()
    await heirs[0].finish(run.id)
    assert (long_flow.began, long_flow.ended) == (2, 1)


async def test_a_queues_run_of_a_dead_owner_is_taken_over_by_whoever_serves(
    room: EngineRoom,
) -> None:
    long_flow = LongFlow()
    owner, heir = await room.open(long_flow.flow), await room.open(long_flow.flow)
    run = await owner.start("desk", queue="work")
    async with owner.serve([QueueSpec(name="work")]):
        await retry_until(lambda: long_flow.began)
        await owner.abandon()
    long_flow.may_end.set()
    async with heir.serve([QueueSpec(name="work", concurrency=1)]):
        assert (await heir.finish(run.id)).result == "done"
    assert long_flow.began == 2


async def test_a_foreground_run_of_a_dead_owner_is_left_to_people(room: EngineRoom) -> None:
    long_flow = LongFlow()
    owner, other = await room.open(long_flow.flow), await room.open(long_flow.flow)
    abandoned = await owner.start("desk")
    await retry_until(lambda: long_flow.began)
    await owner.abandon()
    long_flow.may_end.set()
    async with other.serve([QueueSpec(name="work")]):
        queued = await other.start("desk", queue="work")
        await other.finish(queued.id)
    assert (await room.run(abandoned.id)).status is RunStatus.RUNNING


async def test_silent_owner_loses_its_run(room: EngineRoom, clock: FixedClock) -> None:
    long_flow = LongFlow()
    frozen, heir = await room.open(long_flow.flow), await room.open(long_flow.flow)
    run = await frozen.start("desk")
    await retry_until(lambda: long_flow.began)
    freeze(frozen)
    clock.advance(3600)
    await heir.resume(run.id)
    long_flow.may_end.set()
    assert (await heir.finish(run.id)).result == "done"
    completed = [e for e in await room.events(run.id) if e.body.type == "step_completed"]
    assert len(completed) == 1


async def test_an_owner_that_lost_its_run_writes_no_more_for_it(room: EngineRoom) -> None:
    long_flow = LongFlow()
    zombie = await room.open(long_flow.flow)
    run = await zombie.start("desk")
    await retry_until(lambda: long_flow.began)
    store = await room.store()
    taken = (await room.run(run.id)).model_copy(update={"owner": "wrk_other", "fence": 9})
    await store.write(lambda tx: tx.save_run(taken))
    long_flow.may_end.set()
    await retry_until(lambda: long_flow.ended)
    await zombie.close()
    assert await room.run(run.id) == taken
    assert await store.read(lambda view: view.steps(run.id)) == []
    assert "step_completed" not in [event.body.type for event in await room.events(run.id)]


async def test_close_ends_the_running_step_and_leaves_the_run_at_its_checkpoint(
    room: EngineRoom,
) -> None:
    messages: list[str] = []
    long_flow = LongFlow()

    async def body(ctx: FlowContext, input: Any) -> Any:
        async def work(step: StepContext) -> str:
            try:
                return await long_flow.work(step)
            except asyncio.CancelledError:
                messages.append("end")
                raise

        return await ctx.step("work", work)

    flow = FlowDefinition("story", body)
    engine = await room.open(flow)
    run = await engine.start("story")
    await retry_until(lambda: long_flow.began)
    await engine.close()
    left = await room.run(run.id)
    assert (messages, left.status, left.owner) == (["end"], RunStatus.RUNNING, None)
    assert [event.body.type for event in await room.events(run.id)][-1] == "run_parked"

    long_flow.may_end.set()
    heir = await room.open(flow)
    await heir.resume(run.id)
    assert (await heir.finish(run.id)).result == "done"


async def test_close_leaves_a_waiting_run_waiting(room: EngineRoom) -> None:
    flow = FlowDefinition("story", wait_for_go)
    engine = await room.open(flow)
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.close()
    left = await room.run(run.id)
    assert (left.status, left.owner, left.waiting_for) == (RunStatus.WAITING, None, "go")


async def test_a_run_of_another_version_of_its_flow_is_not_resumed_and_not_harmed(
    room: EngineRoom,
) -> None:
    old = await room.open(FlowDefinition("story", wait_for_go, version=1))
    new = await room.open(FlowDefinition("story", wait_for_go, version=2))
    run = await old.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await old.close()
    with pytest.raises(FlowChanged, match=r"version 1.*version 2"):
        await new.resume(run.id)
    again = await room.open(FlowDefinition("story", wait_for_go, version=1))
    await again.resume(run.id)
    await again.signal(run.id, "go")
    assert (await again.finish(run.id)).result == "gone"


async def test_a_run_whose_flow_is_not_known_here_is_not_resumed(room: EngineRoom) -> None:
    engine = await room.open(FlowDefinition("story", wait_for_go))
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.close()
    with pytest.raises(FlowUnknown, match="'story'"):
        await (await room.open()).resume(run.id)


async def test_code_that_asks_for_another_step_than_recorded_says_so(room: EngineRoom) -> None:
    done: list[str] = []

    def rendering(*names: str) -> FlowDefinition:
        async def body(ctx: FlowContext, input: Any) -> None:
            async def work(step: StepContext) -> None:
                done.append(step.key)

            for name in names:
                await ctx.step(name, work)
            await ctx.wait("go")

        return FlowDefinition("story", body)

    engine = await room.open(rendering("cut", "glue"))
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()

    changed = await room.open(rendering("cut", "paint", "glue"))
    await changed.resume(run.id)
    stopped = await changed.finish(run.id)
    assert stopped.status is RunStatus.NEEDS_HUMAN
    assert stopped.failure is not None
    assert stopped.failure.kind == "FlowChanged"
    assert "'paint'" in stopped.failure.message
    assert "'glue'" in stopped.failure.message
    assert done == ["cut", "glue"]

    restored = await room.open(rendering("cut", "glue"))
    await restored.resume(run.id)
    await restored.signal(run.id, "go")
    assert (await restored.finish(run.id)).status is RunStatus.SUCCEEDED


async def test_code_that_ends_before_the_record_does_says_so(room: EngineRoom) -> None:
    async def long(ctx: FlowContext, input: Any) -> None:
        async def work(step: StepContext) -> None:
            return None

        await ctx.step("cut", work)
        await ctx.wait("go")

    async def short(ctx: FlowContext, input: Any) -> str:
        return "nothing to do"

    engine = await room.open(FlowDefinition("story", long))
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    changed = await room.open(FlowDefinition("story", short))
    await changed.resume(run.id)
    stopped = await changed.finish(run.id)
    assert stopped.failure is not None
    assert stopped.failure.kind == "FlowChanged"
    assert "cut" in stopped.failure.message


async def test_a_run_that_goes_on_under_changed_code_says_so_in_its_journal(
    room: EngineRoom,
) -> None:
    async def before(ctx: FlowContext, input: Any) -> str:
        await ctx.wait("go")
        return "old ending"

    async def after(ctx: FlowContext, input: Any) -> str:
        await ctx.wait("go")
        return "new ending"

    engine = await room.open(FlowDefinition("story", before))
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    changed = await room.open(FlowDefinition("story", after))
    await changed.resume(run.id)
    await changed.signal(run.id, "go")
    assert (await changed.finish(run.id)).result == "new ending"
    assert "flow_code_changed" in [event.body.type for event in await room.events(run.id)]


async def test_a_run_is_hosted_for_as_long_as_its_owner_is_alive(room: EngineRoom) -> None:
    long_flow = LongFlow()
    owner, other = await room.open(long_flow.flow), await room.open(long_flow.flow)
    run = await owner.start("desk")
    await retry_until(lambda: long_flow.began)
    for engine in (owner, other):
        assert await engine.hosted([run.id, "run_unknown"]) == {run.id}
    await owner.abandon()
    assert await other.hosted([run.id]) == set()


class Asker:
    """A flow that waits for the answer to an approval, then does one long step."""

    def __init__(self) -> None:
        self.began = 0
        self.may_end = asyncio.Event()
        self.flow = FlowDefinition("asker", self.body)

    async def body(self, ctx: FlowContext, input: Any) -> str:
        await ctx.wait("approval:apr_1")
        return await ctx.step("work", self.work)

    async def work(self, step: StepContext) -> str:
        self.began += 1
        await self.may_end.wait()
        return "done"


WORK = [QueueSpec(name="work")]


async def _parked(room: EngineRoom, asker: Asker) -> str:
    """A run of the foreground whose process has left while it waits."""
    caller = await room.open(asker.flow)
    run = await caller.start("asker")
    await caller.finish(run.id, stop_when_waiting=True)
    await caller.close()
    return run.id


async def test_an_answered_foreground_run_is_taken_up_once_and_survives_its_new_host(
    room: EngineRoom,
) -> None:
    asker = Asker()
    run_id = await _parked(room, asker)
    first, second, heir = [await room.open(asker.flow) for _ in range(3)]
    async with first.serve(WORK, answered_queue="work"), second.serve(WORK, answered_queue="work"):
        await heir.signal(run_id, "approval:apr_1")
        await retry_until(lambda: asker.began)
        taken = await room.run(run_id)
        assert taken.owner in (first.worker_id, second.worker_id)
        await first.abandon()
        await second.abandon()
    asker.may_end.set()
    async with heir.serve(WORK, answered_queue="work"):
        assert (await heir.finish(run_id)).result == "done"
    assert asker.began == 2


async def test_a_worker_that_starts_after_the_answer_takes_the_run_up(room: EngineRoom) -> None:
    asker = Asker()
    asker.may_end.set()
    run_id = await _parked(room, asker)
    worker = await room.open(asker.flow)
    await worker.signal(run_id, "approval:apr_1")
    async with worker.serve(WORK):
        assert (await room.run(run_id)).status is RunStatus.WAITING
    async with worker.serve(WORK, answered_queue="work"):
        assert (await worker.finish(run_id)).result == "done"


async def test_a_worker_takes_up_a_run_of_the_foreground_that_is_to_look_at_its_pull_request(
    room: EngineRoom, clock: FixedClock
) -> None:
    async def follow(ctx: FlowContext, input: Any) -> str:
        await ctx.wait("pull_request:7", seconds=60)
        return "merged"

    flow = FlowDefinition("follower", follow)
    caller = await room.open(flow)
    run = await caller.start("follower")
    await caller.finish(run.id, stop_when_waiting=True)
    await caller.close()
    worker = await room.open(flow)
    clock.advance(61)
    async with worker.serve(WORK, answered_queue="work"):
        ended = await worker.finish(run.id)
    assert (ended.result, ended.queue) == ("merged", "work")


async def test_an_answered_run_stays_with_the_foreground_that_still_waits(room: EngineRoom) -> None:
    asker = Asker()
    asker.may_end.set()
    caller, worker = await room.open(asker.flow), await room.open(asker.flow)
    run = await caller.start("asker")
    await caller.finish(run.id, stop_when_waiting=True)
    async with worker.serve(WORK, answered_queue="work"):
        await worker.signal(run.id, "approval:apr_1")
        ended = await caller.finish(run.id)
    assert (ended.result, ended.fence, ended.queue) == ("done", run.fence, None)


async def test_only_an_answer_that_a_run_waits_for_hands_it_to_a_worker(room: EngineRoom) -> None:
    asker = Asker()
    asker.may_end.set()
    run_id, long_flow = await _parked(room, asker), LongFlow()
    long_flow.may_end.set()
    worker = await room.open(asker.flow, long_flow.flow)
    await worker.signal(run_id, "approval:apr_2")
    await worker.signal(run_id, "go")
    async with worker.serve(WORK, answered_queue="work"):
        other = await worker.start("desk", queue="work")
        await worker.finish(other.id)
        assert (await room.run(run_id)).status is RunStatus.WAITING


async def test_an_answered_run_is_left_to_people_where_a_worker_lacks_what_it_needs(
    room: EngineRoom,
) -> None:
    asker = Asker()
    asker.may_end.set()
    run_id, store = await _parked(room, asker), await room.store()

    def need(tx: Transaction) -> None:
        run = require_run(tx, run_id)
        tx.save_run(run.model_copy(update={"needs": ("variable:TOKEN",)}))

    await store.write(need)
    worker = await room.open(asker.flow)
    await worker.signal(run_id, "approval:apr_1")
    async with worker.serve(WORK, answered_queue="work"):
        heartbeats = await store.read(lambda view: view.workers())
        run = await room.run(run_id)
        assert run.status is RunStatus.WAITING
        assert [heartbeat.lacks(run) for heartbeat in heartbeats if heartbeat.answered_queue] == [
            ["variable:TOKEN"]
        ]
    assert (await worker.resume(run_id)).owner == worker.worker_id
