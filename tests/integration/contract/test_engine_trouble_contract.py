"""Engines in trouble: people who are needed, errors that pass, steps that are tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from podium.core.errors import AgentLost, NotPossibleNow, StepFailed, StoreBusy, StoreFull
from podium.core.events import NoteTaken
from podium.core.work import QueueSpec, RunStatus, Signal
from podium.engine import EngineSettings, FlowDefinition, FolderPresence, LocalEngine
from podium.engine.run_hold import RunHold
from podium.engine.run_host import RunHost, StopReason
from podium.ports import FlowContext, RunQuery, StepContext, StoreView, Transaction
from podium.testing import FixedClock, MemoryStore, SteadyIds, retry_until
from tests.integration.contract.engines import EngineRoom, freeze

T = TypeVar("T")


async def guided(ctx: FlowContext, input: Any) -> Any:
    """Does something, asks a person, does something with the answer."""

    async def work(step: StepContext) -> str:
        return "draft"

    draft = await ctx.step("work", work)
    answer = await ctx.ask_person("review", "the draft is not good enough; say what to do")
    return [draft, answer.payload, answer.sent_by]


GUIDED = FlowDefinition("guided", guided)


async def test_a_body_that_asks_a_person_needs_one_until_it_is_resumed(room: EngineRoom) -> None:
    engine = await room.open(GUIDED)
    run = await engine.start("guided")
    stopped = await engine.finish(run.id)
    assert stopped.status is RunStatus.NEEDS_HUMAN
    assert stopped.failure is not None
    assert "not good enough" in stopped.failure.message
    await engine.close()
    other = await room.open(GUIDED)
    await other.resume(run.id, note="shorten it", by="ann")
    ended = await other.finish(run.id)
    assert (ended.status, ended.failure) == (RunStatus.SUCCEEDED, None)
    assert ended.result == ["draft", "shorten it", "ann"]


async def test_a_queues_run_that_asks_a_person_is_not_claimed_meanwhile(room: EngineRoom) -> None:
    engine = await room.open(GUIDED)
    run = await engine.start("guided", queue="work")
    async with engine.serve([QueueSpec(name="work")]):
        await room.until(run.id, RunStatus.NEEDS_HUMAN)
        assert (await room.until_nobody_hosts(run.id)).status is RunStatus.NEEDS_HUMAN
        await engine.resume(run.id, note="go")
        assert (await engine.finish(run.id)).result == ["draft", "go", ""]


async def test_a_queues_run_whose_error_passes_is_tried_again_later_and_then_a_person_is_asked(
    room: EngineRoom, clock: FixedClock
) -> None:
    asked: list[int] = []

    async def body(ctx: FlowContext, input: Any) -> None:
        async def ask(step: StepContext) -> None:
            asked.append(len(asked))
            raise AgentLost("nobody answers")

        await ctx.step("ask", ask)

    engine = await room.open(FlowDefinition("ask", body))
    run = await engine.start("ask", queue="work")
    pauses = []
    async with engine.serve([QueueSpec(name="work")]):
        for number in range(1, 6):
            await until_set_back(room, run.id, number)
            parked = await room.run(run.id)
            assert parked.not_before is not None
            pauses.append(parked.not_before - clock.now())
            clock.advance(pauses[-1].total_seconds())
        stopped = await room.until(run.id, RunStatus.NEEDS_HUMAN)
    assert pauses == [timedelta(seconds=seconds) for seconds in (1, 2, 4, 8, 16)]
    assert stopped.failure is not None
    assert "nobody answers" in stopped.failure.message


async def until_set_back(room: EngineRoom, run_id: str, times: int) -> None:
    async def set_back() -> bool:
        return (await room.run(run_id)).setbacks == times

    await retry_until(set_back)


async def test_an_error_that_knows_when_to_try_again_is_believed(
    room: EngineRoom, clock: FixedClock
) -> None:
    later = clock.now() + timedelta(hours=3)

    async def body(ctx: FlowContext, input: Any) -> None:
        async def ask(step: StepContext) -> None:
            error = AgentLost("come back at noon")
            error.retry_at = later
            raise error

        await ctx.step("ask", ask)

    engine = await room.open(FlowDefinition("ask", body))
    run = await engine.start("ask", queue="work")
    async with engine.serve([QueueSpec(name="work")]):
        await until_set_back(room, run.id, 1)
        parked = await room.run(run.id)
    assert parked.not_before == later


async def test_a_retry_forgets_the_last_failed_step_and_all_after_it(room: EngineRoom) -> None:
    done: list[str] = []
    well = [False]

    async def body(ctx: FlowContext, input: Any) -> list[str]:
        async def first(step: StepContext) -> str:
            done.append("first")
            raise ValueError("red, and expected to be")

        async def named(step: StepContext) -> str:
            done.append(step.key)
            return step.key

        async def last(step: StepContext) -> str:
            done.append("last")
            if not well[0]:
                raise ValueError("broken")
            return "last"

        try:
            await ctx.step("first", first)
        except StepFailed:
            await ctx.step("repair", named)
        return [await ctx.step("between", named), await ctx.step("last", last)]

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    assert (await engine.finish(run.id)).status is RunStatus.FAILED
    well[0] = True
    await engine.retry(run.id)
    ended = await engine.finish(run.id)
    assert (ended.status, ended.result) == (RunStatus.SUCCEEDED, ["between", "last"])
    assert done == ["first", "repair", "between", "last", "last"]


async def test_a_run_that_succeeded_is_tried_again_only_from_a_named_step(
    room: EngineRoom,
) -> None:
    done: list[str] = []

    async def body(ctx: FlowContext, input: Any) -> int:
        async def work(step: StepContext) -> int:
            done.append(step.key)
            return len(done)

        return await ctx.step("work", work)

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    await engine.finish(run.id)
    with pytest.raises(NotPossibleNow, match="--from"):
        await engine.retry(run.id)
    assert (await room.run(run.id)).result == 1
    await engine.retry(run.id, from_step="work")
    assert (await engine.finish(run.id)).result == 2


async def test_what_was_sent_to_an_ended_run_is_forgotten(room: EngineRoom) -> None:
    async def body(ctx: FlowContext, input: Any) -> str:
        await ctx.wait("go")
        return "done"

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    await engine.signal(run.id, "never asked for")
    await engine.signal(run.id, "go")
    await engine.finish(run.id)
    store = await room.store()
    assert await store.read(lambda view: view.untaken_signals([run.id])) == set()


class ShakyStore(MemoryStore):
    """A store that is busy when the test says so."""

    busy = False
    refused = 0

    async def read(self, work: Callable[[StoreView], T]) -> T:
        if self.busy:
            self.refused += 1
            raise StoreBusy("somebody holds it")
        return await super().read(work)


async def test_an_engine_still_hears_after_its_store_was_busy(tmp_path: Path) -> None:
    store = ShakyStore()
    quick = EngineSettings(tick_seconds=0.01, gather_seconds=0.001)
    engine = LocalEngine(
        store,
        clock=FixedClock(),
        ids=SteadyIds(),
        presence=FolderPresence(tmp_path),
        settings=quick,
    )

    async def body(ctx: FlowContext, input: Any) -> str:
        answer = await ctx.wait("go")
        return str(answer.payload) if answer else "none"

    engine.register(FlowDefinition("story", body))
    run = await engine.start("story")
    async with engine.serve([QueueSpec(name="work")]):
        await engine.finish(run.id, stop_when_waiting=True)
        store.busy = True
        await store.write(lambda tx: tx.append(run.id, NoteTaken(text="a change to look at")))
        await retry_until(lambda: store.refused >= 5)
        store.busy = False
        await engine.signal(run.id, "go", "heard")
        assert (await engine.finish(run.id)).result == "heard"
    await engine.close()


class FullStore(MemoryStore):
    """A store on a disk that is full when the test says so."""

    full = False

    async def write(self, work: Callable[[Transaction], T]) -> T:
        if self.full:
            raise StoreFull("podium.db", "no space is left on its disk", "free space")
        return await super().write(work)


async def test_waiter_for_a_run_whose_end_cannot_be_stored_is_given_the_reason(
    tmp_path: Path,
) -> None:
    store = FullStore()
    quick = EngineSettings(tick_seconds=0.01, gather_seconds=0.001)
    engine = LocalEngine(
        store,
        clock=FixedClock(),
        ids=SteadyIds(),
        presence=FolderPresence(tmp_path),
        settings=quick,
    )
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)

    async def body(ctx: FlowContext, input: Any) -> None:
        async def work(step: StepContext) -> None:
            store.full = True

        await ctx.step("work", work)

    engine.register(FlowDefinition("story", body))
    run = await engine.start("story")
    with pytest.raises(StoreFull, match="free space"):
        await engine.finish(run.id)
    store.full = False
    await engine.close()


async def test_branches_that_start_tasks_within_tasks_are_resumed(room: EngineRoom) -> None:
    stuck = asyncio.Event()
    done: list[str] = []

    async def body(ctx: FlowContext, input: Any) -> list[str]:
        async def quick(step: StepContext) -> str:
            done.append(step.key)
            return step.key

        async def slow(step: StepContext) -> str:
            stuck.set()
            await asyncio.sleep(0 if input == "again" or len(done) > 3 else 60)
            done.append(step.key)
            return step.key

        async def nested(depth: int) -> str:
            if depth == 0:
                return await ctx.step("deep", quick) + await ctx.step("deeper", quick)
            [found] = await asyncio.gather(nested(depth - 1))
            return found

        async def other() -> str:
            return await ctx.step("slow", slow)

        return list(await asyncio.gather(other(), nested(9)))

    first = await room.open(FlowDefinition("story", body))
    run = await first.start("story")
    await retry_until(lambda: stuck.is_set() and len(done) == 2)

    async def both_recorded() -> bool:
        store = await room.store()
        return len(await store.read(lambda view: view.steps(run.id))) == 2

    await retry_until(both_recorded)
    await first.abandon()
    done.extend(["x", "y"])
    second = await room.open(FlowDefinition("story", body))
    await second.resume(run.id)
    assert (await second.finish(run.id)).result == ["slow", "deepdeeper"]
    assert done.count("deep") == done.count("deeper") == 1


async def test_two_parents_of_one_child_are_both_notified_of_its_end(room: EngineRoom) -> None:
    async def child(ctx: FlowContext, input: Any) -> str:
        await ctx.wait("go")
        return "grown"

    async def parent(ctx: FlowContext, input: Any) -> Any:
        run_id = await ctx.start_child("c", "child", None, queue="work", dedup_key="same")
        return (await ctx.child(run_id)).result

    engine = await room.open(FlowDefinition("child", child), FlowDefinition("parent", parent))
    parents = [await engine.start("parent") for _ in range(2)]
    async with engine.serve([QueueSpec(name="work")]):
        for run in parents:
            await room.until(run.id, RunStatus.WAITING)
        [only] = await engine.runs(RunQuery(flow="child"))
        await engine.signal(only.id, "go")
        ended = [await engine.finish(run.id) for run in parents]
    assert [run.result for run in ended] == ["grown", "grown"]


async def test_a_signal_that_comes_while_a_waiting_run_is_unloaded_lets_it_continue(
    room: EngineRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Patched, since the moment is too short to meet: the body is woken after it was decided to unload it.
    unload = RunHost.stop
    sent: list[str] = []

    def record_waiting(
        hold: RunHold, tx: Transaction, original: Any = RunHold.record_waiting
    ) -> None:
        original(hold, tx)
        if not sent:
            now = tx.now()
            tx.add_signal(Signal(id="sig_1", run_id=hold.run.id, name="go", sent_at=now))

    def stop(host: RunHost, why: StopReason) -> None:
        if why is StopReason.UNLOADED and not sent:
            sent.append(host.run_id)
            host.hold.hear({"go"})
        unload(host, why)

    monkeypatch.setattr(RunHold, "record_waiting", record_waiting)
    monkeypatch.setattr(RunHost, "stop", stop)

    async def waiting(ctx: FlowContext, input: Any) -> str:
        await ctx.wait("go")
        return "gone on"

    engine = await room.open(FlowDefinition("waiting", waiting))
    run = await engine.start("waiting", queue="work")
    async with engine.serve([QueueSpec(name="work")]):
        async with asyncio.timeout(30):
            ended = await engine.finish(run.id)
    assert (ended.result, sent) == ("gone on", [run.id])


async def test_a_retry_gives_back_the_signals_that_forgotten_waits_had_taken(
    room: EngineRoom,
) -> None:
    async def body(ctx: FlowContext, input: Any) -> Any:
        async def work(step: StepContext) -> str:
            return "worked"

        await ctx.step("work", work)
        answer = await ctx.wait("answer", seconds=3600)
        return answer.payload if answer else None

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    await engine.signal(run.id, "answer", "yes")
    assert (await engine.finish(run.id)).result == "yes"
    await engine.retry(run.id, from_step="work")
    assert (await engine.finish(run.id)).result == "yes"


async def test_nothing_acts_for_a_run_that_has_failed(room: EngineRoom) -> None:
    done: list[str] = []
    began = asyncio.Event()

    async def body(ctx: FlowContext, input: Any) -> None:
        async def fail(step: StepContext) -> None:
            await began.wait()
            raise ValueError("broken")

        async def act(step: StepContext) -> None:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                done.append("ended")

        await asyncio.gather(ctx.step("fail", fail), ctx.step("act", act))

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    assert (await engine.finish(run.id)).status is RunStatus.FAILED
    assert done == ["ended"]


async def test_a_run_whose_owner_is_only_stopped_is_cancelled_when_it_goes_on(
    room: EngineRoom, clock: FixedClock
) -> None:
    async def body(ctx: FlowContext, input: Any) -> None:
        await ctx.wait("never")

    flow = FlowDefinition("story", body)
    stopped, other = await room.open(flow), await room.open(flow)
    run = await stopped.start("story")
    await room.until(run.id, RunStatus.WAITING)
    freeze(stopped)
    clock.advance(3600)
    wished = await other.cancel(run.id, by="ann")
    assert (wished.status, wished.cancel_requested) == (RunStatus.WAITING, True)
    await stopped.abandon()
    await other.resume(run.id)
    assert (await other.finish(run.id)).status is RunStatus.CANCELLED
