"""Contract of every `Engine`: queues, children and schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from podium.core.errors import BadInput, FlowUnknown
from podium.core.work import QueueSpec, Run, RunStatus, Schedule
from podium.engine import EngineSettings, FlowDefinition, FolderPresence, LocalEngine
from podium.engine.liveness import Heartbeat
from podium.engine.ownership import require_run
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import FlowContext, RunQuery, StepContext, StoreView
from podium.testing import FixedClock, MemoryStore, SteadyIds, retry_until
from tests.integration.contract.engines import EngineRoom, MortalEngine

T = TypeVar("T")
WORK = QueueSpec(name="work")


# Time that passes while an engine serves must be shorter than the lease of its heartbeat: a longer
# jump is what the death of a process looks like.


class Workshop:
    """A flow that notes what was worked on, in which order and how much of it at once."""

    def __init__(self) -> None:
        self.order: list[Any] = []
        self.at_once = 0
        self.most_at_once = 0
        self.may_end = asyncio.Event()
        self.flow = FlowDefinition("make", self.body)

    def has_made(self, count: int) -> bool:
        return len(self.order) == count

    async def body(self, ctx: FlowContext, input: Any) -> Any:
        async def make(step: StepContext) -> Any:
            self.order.append(input)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            await self.may_end.wait()
            self.at_once -= 1
            return [input]

        return await ctx.step("make", make)


async def finish_all(engine: MortalEngine, runs: list[Run]) -> list[Run]:
    return [await engine.finish(run.id) for run in runs]


async def scheduled_runs(engine: MortalEngine) -> list[Run]:
    return await engine.runs(RunQuery(flow="make"))


async def test_a_queued_run_waits_for_somebody_who_serves_its_queue(room: EngineRoom) -> None:
    shop = Workshop()
    shop.may_end.set()
    door, worker = await room.open(shop.flow), await room.open(shop.flow)
    run = await door.start("make", "cup", queue="work")
    assert (run.status, run.owner) == (RunStatus.QUEUED, None)
    async with worker.serve([QueueSpec(name="elsewhere"), WORK]):
        assert (await door.finish(run.id)).result == ["cup"]


async def test_a_run_queued_while_a_worker_serves_is_found_by_it(room: EngineRoom) -> None:
    shop = Workshop()
    shop.may_end.set()
    door, worker = await room.open(shop.flow), await room.open(shop.flow)
    async with worker.serve([WORK]):
        for cup in range(3):
            run = await door.start("make", cup, queue="work")
            assert (await door.finish(run.id)).result == [cup]


async def test_a_queue_never_runs_more_at_once_than_it_may(room: EngineRoom) -> None:
    shop = Workshop()
    workers = [await room.open(shop.flow) for _ in range(2)]
    runs = [await workers[0].start("make", number, queue="work") for number in range(6)]
    narrow = QueueSpec(name="work", concurrency=2)
    async with workers[0].serve([narrow]), workers[1].serve([narrow]):
        await retry_until(lambda: len(shop.order) == 2)
        shop.may_end.set()
        ended = await finish_all(workers[0], runs)
    assert [run.status for run in ended] == [RunStatus.SUCCEEDED] * 6
    assert sorted(shop.order) == list(range(6))
    assert shop.most_at_once <= 2


async def test_a_worker_never_hosts_more_of_a_queue_than_it_may(room: EngineRoom) -> None:
    shop = Workshop()
    worker = await room.open(shop.flow)
    runs = [await worker.start("make", number, queue="work") for number in range(5)]
    async with worker.serve([QueueSpec(name="work", worker_concurrency=2)]):
        await retry_until(lambda: len(shop.order) >= 2)
        shop.may_end.set()
        await finish_all(worker, runs)
    assert shop.most_at_once == 2


async def test_a_queue_starts_no_more_within_its_window_than_it_may(
    room: EngineRoom, clock: FixedClock
) -> None:
    shop = Workshop()
    shop.may_end.set()
    worker = await room.open(shop.flow)
    runs = [await worker.start("make", number, queue="work") for number in range(3)]
    async with worker.serve([QueueSpec(name="work", rate_limit=2, rate_seconds=10)]):
        await finish_all(worker, runs[:2])
        assert (await room.run(runs[2].id)).status is RunStatus.QUEUED
        clock.advance(10)
        await worker.finish(runs[2].id)
    # Two that are claimed together may begin in any order.
    assert (set(shop.order[:2]), shop.order[2:]) == ({0, 1}, [2])


async def test_higher_priority_goes_first_and_then_age(room: EngineRoom) -> None:
    shop = Workshop()
    shop.may_end.set()
    worker = await room.open(shop.flow)
    runs = [
        await worker.start("make", name, queue="work", priority=priority)
        for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 9))
    ]
    async with worker.serve([QueueSpec(name="work", concurrency=1)]):
        await finish_all(worker, runs)
    assert shop.order == ["d", "b", "a", "c"]


async def test_a_dedup_key_starts_one_run_until_that_ended(room: EngineRoom) -> None:
    shop = Workshop()
    shop.may_end.set()
    door = await room.open(shop.flow)
    first = await door.start("make", 1, queue="work", dedup_key="k")
    twin = await door.start("make", 2, queue="work", dedup_key="k")
    assert twin.id == first.id
    async with door.serve([WORK]):
        await door.finish(first.id)
        later = await door.start("make", 3, queue="work", dedup_key="k")
        await door.finish(later.id)
    assert shop.order == [1, 3]


async def test_a_delayed_run_starts_when_its_time_has_come(
    room: EngineRoom, clock: FixedClock
) -> None:
    shop = Workshop()
    shop.may_end.set()
    worker = await room.open(shop.flow)
    delayed = await worker.start("make", "late", queue="work", delay_seconds=10)
    async with worker.serve([WORK]):
        prompt = await worker.start("make", "prompt", queue="work")
        await worker.finish(prompt.id)
        clock.advance(9)
        second = await worker.start("make", "second", queue="work")
        await worker.finish(second.id)
        clock.advance(1)
        await worker.finish(delayed.id)
    assert shop.order == ["prompt", "second", "late"]


async def test_a_waiting_run_does_not_hold_its_place_in_the_queue(room: EngineRoom) -> None:
    async def ask(ctx: FlowContext, input: Any) -> Any:
        answer = await ctx.wait("answer")
        return answer and answer.payload

    shop = Workshop()
    shop.may_end.set()
    worker = await room.open(shop.flow, FlowDefinition("ask", ask))
    asking = await worker.start("ask", queue="work")
    next_one = await worker.start("make", "cup", queue="work")
    async with worker.serve([QueueSpec(name="work", concurrency=1, worker_concurrency=1)]):
        await worker.finish(next_one.id)
        assert (await room.until(asking.id, RunStatus.WAITING)).owner is None
        await worker.signal(asking.id, "answer", 42)
        assert (await worker.finish(asking.id)).result == 42


async def test_a_waiting_run_of_a_queue_wakes_at_its_deadline(
    room: EngineRoom, clock: FixedClock
) -> None:
    async def ask(ctx: FlowContext, input: Any) -> Any:
        return "too late" if await ctx.wait("answer", seconds=10) is None else "answered"

    worker = await room.open(FlowDefinition("ask", ask))
    run = await worker.start("ask", queue="work")
    async with worker.serve([WORK]):
        await room.until(run.id, RunStatus.WAITING)
        await room.until_nobody_hosts(run.id)
        clock.advance(10)
        assert (await worker.finish(run.id)).result == "too late"


def _has_more(made: list[Any], than: int) -> bool:
    return len(made) > than


class SlowlyReadStore(MemoryStore):
    """Lets others in before every answer."""

    async def read(self, work: Callable[[StoreView], T]) -> T:
        for _ in range(200):
            await asyncio.sleep(0)
        return await super().read(work)


async def test_a_worker_that_stops_serving_while_it_claims_takes_nothing_back(
    tmp_path: Path,
) -> None:
    shop = Workshop()
    settings = EngineSettings(tick_seconds=0.001, gather_seconds=0.0001)
    store = SlowlyReadStore()
    engine = LocalEngine(
        store,
        clock=FixedClock(),
        ids=SteadyIds(),
        presence=FolderPresence(tmp_path),
        settings=settings,
    )
    engine.register(shop.flow)
    for number in range(30):
        run = await engine.start("make", f"cup {number}", queue="work")
        made = len(shop.order)
        async with engine.serve([WORK]):
            await retry_until(partial(_has_more, shop.order, made))
        left = await store.read(partial(require_run, run_id=run.id))
        assert (left.status, left.owner) == (RunStatus.QUEUED, None)
        await engine.cancel(run.id, by="Ann")
    await engine.close()


async def test_a_worker_that_stops_serving_gives_its_runs_back_to_the_queue(
    room: EngineRoom,
) -> None:
    shop = Workshop()
    first, second = await room.open(shop.flow), await room.open(shop.flow)
    run = await first.start("make", "cup", queue="work")
    async with first.serve([WORK]):
        await retry_until(lambda: shop.order)
    left = await room.run(run.id)
    assert (left.status, left.owner) == (RunStatus.QUEUED, None)
    shop.may_end.set()
    async with second.serve([WORK]):
        assert (await second.finish(run.id)).result == ["cup"]


async def test_a_worker_leaves_runs_of_flows_it_does_not_know(room: EngineRoom) -> None:
    shop, other = Workshop(), Workshop()
    shop.may_end.set()
    door = await room.open(shop.flow, FlowDefinition("secret", other.body))
    worker = await room.open(shop.flow)
    unknown = await door.start("secret", 1, queue="work", priority=9)
    known = await door.start("make", 2, queue="work")
    async with worker.serve([WORK]):
        await worker.finish(known.id)
    assert (await room.run(unknown.id)).status is RunStatus.QUEUED


async def test_a_parent_gets_what_its_child_made(room: EngineRoom) -> None:
    async def parent(ctx: FlowContext, input: Any) -> Any:
        child_id = await ctx.start_child("part", "make", input, queue="work", task="a part")
        child = await ctx.child(child_id)
        return [child.status, child.result]

    shop = Workshop()
    shop.may_end.set()
    engine = await room.open(shop.flow, FlowDefinition("parent", parent))
    run = await engine.start("parent", "leg")
    async with engine.serve([WORK]):
        assert (await engine.finish(run.id)).result == ["succeeded", ["leg"]]
    (child,) = await engine.runs(RunQuery(parent_id=run.id))
    assert (child.task, child.parent_id) == ("a part", run.id)


async def test_a_parent_gets_how_its_child_failed(room: EngineRoom) -> None:
    async def fail(ctx: FlowContext, input: Any) -> None:
        raise ValueError("broke")

    async def parent(ctx: FlowContext, input: Any) -> Any:
        child = await ctx.child(await ctx.start_child("part", "fail", None, queue="work"))
        return [child.status, child.failure and child.failure.kind]

    engine = await room.open(FlowDefinition("fail", fail), FlowDefinition("parent", parent))
    run = await engine.start("parent")
    async with engine.serve([WORK]):
        assert (await engine.finish(run.id)).result == ["failed", "ValueError"]


async def test_a_child_is_started_once_however_often_its_parent_is_resumed(
    room: EngineRoom,
) -> None:
    async def parent(ctx: FlowContext, input: Any) -> Any:
        ids = [
            await ctx.start_child("part", "make", number, queue="work", index=number)
            for number in range(2)
        ]
        return [(await ctx.child(item)).result for item in ids]

    shop = Workshop()
    shop.may_end.set()
    flows = (shop.flow, FlowDefinition("parent", parent))
    engine = await room.open(*flows)
    run = await engine.start("parent")
    for _ in range(3):
        await room.until(run.id, RunStatus.WAITING)
        await engine.abandon()
        engine = await room.open(*flows)
        await engine.resume(run.id)
    async with engine.serve([WORK]):
        assert (await engine.finish(run.id)).result == [[0], [1]]
    assert len(await engine.runs(RunQuery(parent_id=run.id))) == 2
    assert sorted(shop.order) == [0, 1]


async def test_a_parent_hears_of_a_child_that_ended_while_nobody_hosted_it(
    room: EngineRoom,
) -> None:
    async def parent(ctx: FlowContext, input: Any) -> Any:
        child_id = await ctx.start_child("part", "make", "leg", queue="work")
        return (await ctx.child(child_id)).result

    shop = Workshop()
    shop.may_end.set()
    story = FlowDefinition("parent", parent)
    engine, worker = await room.open(shop.flow, story), await room.open(shop.flow)
    run = await engine.start("parent")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    (child,) = await worker.runs(RunQuery(parent_id=run.id))
    async with worker.serve([WORK]):
        await worker.finish(child.id)
    heir = await room.open(shop.flow, story)
    await heir.resume(run.id)
    assert (await heir.finish(run.id)).result == ["leg"]


async def test_a_schedule_fires_once_however_many_serve(
    room: EngineRoom, clock: FixedClock
) -> None:
    shop = Workshop()
    shop.may_end.set()
    one, other = await room.open(shop.flow), await room.open(shop.flow)
    await one.schedule(
        Schedule(
            name="chime",
            flow="make",
            input="chime",
            queue="work",
            every_seconds=10,
            next_at=clock.now() + timedelta(seconds=10),
        )
    )
    async with one.serve([WORK]), other.serve([WORK]):
        for number in (1, 2, 3):
            clock.advance(10)
            await retry_until(partial(shop.has_made, number))
            # Both engines see the commits of this run and look at the schedules again.
            nudge = await one.start("make", "nudge")
            await other.finish(nudge.id)
            shop.order.remove("nudge")
    fired = [run for run in await scheduled_runs(one) if run.queue == "work"]
    assert [run.input for run in fired] == ["chime"] * 3
    assert [run.status for run in fired] == [RunStatus.SUCCEEDED] * 3


async def test_times_missed_while_nobody_served_are_fired_once(
    room: EngineRoom, clock: FixedClock
) -> None:
    shop = Workshop()
    shop.may_end.set()
    engine = await room.open(shop.flow)
    await engine.schedule(
        Schedule(name="n", flow="make", queue="work", cron="0 * * * *", next_at=clock.now())
    )
    clock.advance(5 * 3600 + 60)
    async with engine.serve([WORK]):
        await retry_until(lambda: shop.order)
    assert len(await scheduled_runs(engine)) == 1
    (schedule,) = await (await room.store()).read(lambda view: view.schedules())
    assert schedule.next_at == clock.now() + timedelta(minutes=59)


async def test_a_schedule_that_was_taken_away_or_paused_fires_no_more(
    room: EngineRoom, clock: FixedClock
) -> None:
    shop = Workshop()
    shop.may_end.set()
    engine = await room.open(shop.flow)
    made = Schedule(name="gone", flow="make", queue="work", every_seconds=9, next_at=clock.now())
    await engine.schedule(made)
    await engine.schedule(made.model_copy(update={"name": "paused", "paused": True}))
    await engine.schedule(made.model_copy(update={"name": "due", "input": "due"}))
    await engine.unschedule("gone")
    async with engine.serve([WORK]):
        await retry_until(lambda: shop.order)
        run = await engine.start("make", "last", queue="work")
        await engine.finish(run.id)
    assert shop.order == ["due", "last"]


@pytest.mark.parametrize("broken", [{"cron": "every day"}, {"every_seconds": -1}, {}], ids=str)
async def test_a_schedule_that_cannot_fire_is_refused(
    room: EngineRoom, clock: FixedClock, broken: dict[str, Any]
) -> None:
    shop = Workshop()
    engine = await room.open(shop.flow)
    with pytest.raises(BadInput, match="'odd'"):
        await engine.schedule(
            Schedule(name="odd", flow="make", queue="work", next_at=clock.now(), **broken)
        )


async def test_a_schedule_of_an_unknown_flow_is_refused(
    room: EngineRoom, clock: FixedClock
) -> None:
    engine = await room.open()
    with pytest.raises(FlowUnknown):
        await engine.schedule(
            Schedule(name="n", flow="no", queue="work", every_seconds=9, next_at=clock.now())
        )


@pytest.mark.soak
async def test_a_queue_of_short_runs_does_not_keep_a_worker_from_saying_that_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(ctx: Any, input: Any) -> None:
        return None

    heartbeats: list[str] = []

    send = Heartbeat.send

    async def counted(heart: Heartbeat) -> None:
        heartbeats.append("beat")
        await send(heart)

    monkeypatch.setattr(Heartbeat, "send", counted)
    store = MemoryStore(SystemClock())
    engine = LocalEngine(
        store,
        clock=SystemClock(),
        ids=SystemIds(),
        presence=FolderPresence(tmp_path),
        settings=EngineSettings(heartbeat_seconds=0.01, tick_seconds=0.01),
    )
    engine.register(FlowDefinition("short", nothing))
    runs = [await engine.start("short", queue="work") for _ in range(300)]
    async with engine.serve([WORK]):
        before = len(heartbeats)
        await engine.finish(runs[-1].id)
    assert len(heartbeats) - before > 3
    await engine.close()
