"""Contract of every `Engine`: starting runs, doing their steps once and ending them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from podium.core.decisions import CallOutcome
from podium.core.errors import (
    AgentLost,
    BadInput,
    BudgetSpent,
    CallInDoubt,
    FlowUnknown,
    NeedsHuman,
    NotPossibleNow,
    PodiumError,
    StepFailed,
    TimedOut,
    UnknownId,
)
from podium.core.events import NoteTaken
from podium.core.work import RunStatus
from podium.engine import FlowDefinition
from podium.ports import FlowContext, Retry, RunQuery, StepContext, Transaction
from podium.testing import retry_until
from tests.integration.contract.engines import EngineRoom


class Size(BaseModel):
    width: int
    names: tuple[str, ...] = ()


async def greet(ctx: FlowContext, input: Any) -> Any:
    async def say(step: StepContext) -> str:
        return f"hello {input}"

    return await ctx.step("say", say)


GREET = FlowDefinition("greet", greet)


def flow(body: Any, **more: Any) -> FlowDefinition:
    return FlowDefinition("story", body, **more)


async def test_a_started_run_is_hosted_at_once_and_ends_with_its_result(room: EngineRoom) -> None:
    engine = await room.open(GREET)
    started = await engine.start("greet", "Ada", task="be kind", settings={"mode": "x"})
    assert (started.status, started.task) == (RunStatus.RUNNING, "be kind")
    ended = await engine.finish(started.id)
    assert (ended.status, ended.result, ended.owner) == (RunStatus.SUCCEEDED, "hello Ada", None)
    assert ended.settings == {"mode": "x"}
    assert ended.finished_at is not None


@pytest.mark.parametrize("queue", [None, "work"])
async def test_what_goes_along_with_a_start_is_kept_with_the_run_or_not_at_all(
    room: EngineRoom, queue: str | None
) -> None:
    engine = await room.open(GREET)
    first = await engine.start("greet", "Ada", queue="work")

    def note(tx: Transaction) -> None:
        tx.append(first.id, NoteTaken(text="went along"))

    def refuse(tx: Transaction) -> None:
        note(tx)
        raise NotPossibleNow("somebody was first")

    with pytest.raises(NotPossibleNow):
        await engine.start("greet", "Ben", queue=queue, run_id="run_refused", along=refuse)
    with pytest.raises(BadInput, match="already"):
        await engine.start("greet", "Ben", queue=queue, run_id=first.id, along=note)
    await engine.start("greet", "Cem", queue=queue, run_id="run_kept", along=note)
    assert (await room.run("run_kept")).input == "Cem"
    assert await (await room.store()).read(lambda view: view.run("run_refused")) is None
    kinds = [event.body.type for event in await room.events(first.id)]
    assert kinds.count("note_taken") == 1


async def test_the_whole_journal_of_a_run(room: EngineRoom) -> None:
    engine = await room.open(GREET)
    run = await engine.start("greet", "Ada", task="be kind")
    await engine.finish(run.id)
    lines = [event.line() for event in await room.events(run.id)]
    started = lines[1].pop("owner")
    assert started
    assert [{k: v for k, v in line.items() if k not in ("run", "at")} for line in lines] == [
        {
            "seq": 1,
            "version": 1,
            "type": "run_queued",
            "flow": "greet",
            "flow_version": 1,
            "task": "be kind",
            "queue": None,
            "parent_id": None,
        },
        {"seq": 2, "version": 1, "type": "run_started", "fence": 1},
        {"seq": 3, "version": 1, "type": "step_started", "step": "say", "attempt": 1},
        {"seq": 4, "version": 1, "type": "step_completed", "step": "say", "seconds": 0.0},
        {"seq": 5, "version": 1, "type": "run_succeeded", "result": "hello Ada"},
    ]


async def test_a_run_can_be_given_its_id_once(room: EngineRoom) -> None:
    engine = await room.open(GREET)
    run = await engine.start("greet", "Ada", run_id="run_mine")
    assert run.id == "run_mine"
    with pytest.raises(BadInput, match="run_mine"):
        await engine.start("greet", "Bob", run_id="run_mine")
    assert (await engine.finish("run_mine")).result == "hello Ada"


async def test_any_engine_may_wait_for_a_run_of_another(room: EngineRoom) -> None:
    may_end = asyncio.Event()

    async def body(ctx: FlowContext, input: Any) -> Any:
        async def work(step: StepContext) -> str:
            await may_end.wait()
            return "done"

        return await ctx.step("work", work)

    here, there = await room.open(flow(body)), await room.open()
    run = await here.start("story")
    waiting = asyncio.create_task(there.finish(run.id))
    may_end.set()
    assert (await asyncio.wait_for(waiting, 120)).result == "done"


async def test_unknown_things_are_named(room: EngineRoom) -> None:
    engine = await room.open(GREET)
    with pytest.raises(FlowUnknown, match="'nothing'"):
        await engine.start("nothing")
    with pytest.raises(FlowUnknown, match="'nothing'"):
        await engine.start("nothing", queue="work")
    for asked in (
        engine.finish("run_none"),
        engine.signal("run_none", "answer"),
        engine.cancel("run_none", by="ada"),
        engine.resume("run_none"),
        engine.retry("run_none"),
    ):
        with pytest.raises(UnknownId, match="'run_none'"):
            await asked
    assert await engine.runs(RunQuery()) == []


async def test_input_that_does_not_fit_the_flow_starts_nothing(room: EngineRoom) -> None:
    async def body(ctx: FlowContext, input: Size) -> int:
        return input.width

    engine = await room.open(flow(body, input_type=Size))
    with pytest.raises(BadInput, match="width"):
        await engine.start("story", {"width": "wide"})
    assert await engine.runs(RunQuery()) == []
    run = await engine.start("story", {"width": 3})
    assert (await engine.finish(run.id)).result == 3


async def test_a_recorded_step_is_given_back_and_not_done_again(room: EngineRoom) -> None:
    done: list[str] = []

    async def body(ctx: FlowContext, input: Any) -> Any:
        async def count(step: StepContext) -> int:
            done.append(step.key)
            return len(done)

        first = await ctx.step("count", count)
        second = await ctx.step("count", count, index=1)
        await ctx.wait("go")
        return [first, second]

    engine = await room.open(flow(body))
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()

    heir = await room.open(flow(body))
    await heir.resume(run.id)
    await heir.signal(run.id, "go")
    assert (await heir.finish(run.id)).result == [1, 2]
    assert len(done) == len(set(done)) == 2


async def test_a_step_in_flight_is_done_again_under_the_same_idempotency_key(
    room: EngineRoom,
) -> None:
    keys: list[str] = []

    async def body(ctx: FlowContext, input: Any) -> Any:
        async def work(step: StepContext) -> str:
            keys.append(step.idempotency_key)
            if len(keys) == 1:
                await asyncio.Event().wait()
            return step.run_id

        return await ctx.step("work", work)

    engine = await room.open(flow(body))
    run = await engine.start("story")
    await retry_until(lambda: keys)
    await engine.abandon()

    heir = await room.open(flow(body))
    await heir.resume(run.id)
    assert (await heir.finish(run.id)).result == run.id
    assert keys == [f"{run.id}:work"] * 2


async def test_what_a_step_gives_back_went_through_json_the_first_time_too(
    room: EngineRoom,
) -> None:
    seen: list[Any] = []

    async def body(ctx: FlowContext, input: Any) -> None:
        async def plain(step: StepContext) -> Any:
            return (1, {"inner": (2,), "size": Size(width=3)})

        async def typed(step: StepContext) -> Size:
            return Size(width=4, names=("a",))

        seen.append(await ctx.step("plain", plain))
        seen.append(await ctx.step("typed", typed, returns=Size))
        await ctx.wait("go")

    engine = await room.open(flow(body))
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    heir = await room.open(flow(body))
    await heir.resume(run.id)
    await room.until(run.id, RunStatus.WAITING)

    once = [[1, {"inner": [2], "size": {"width": 3, "names": []}}], Size(width=4, names=("a",))]
    assert seen == once + once


async def test_what_has_no_json_form_fails_the_step_by_name(room: EngineRoom) -> None:
    async def body(ctx: FlowContext, input: Any) -> Any:
        async def work(step: StepContext) -> object:
            return object()

        return await ctx.step("work", work)

    engine = await room.open(flow(body))
    run = await engine.start("story")
    ended = await engine.finish(run.id)
    assert ended.failure is not None
    assert ended.failure.kind == "TypeError"
    assert "'work'" in ended.failure.message


async def test_a_failed_step_raises_the_same_on_replay_and_is_not_tried_again(
    room: EngineRoom,
) -> None:
    tries: list[str] = []
    caught: list[tuple[str, str, str]] = []

    async def body(ctx: FlowContext, input: Any) -> str:
        async def work(step: StepContext) -> None:
            tries.append("try")
            raise ValueError("no such colour")

        try:
            await ctx.step("paint", work)
        except StepFailed as error:
            caught.append((error.step, error.kind, error.message))
        await ctx.wait("go")
        return "went on"

    engine = await room.open(flow(body))
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    heir = await room.open(flow(body))
    await heir.resume(run.id)
    await heir.signal(run.id, "go")
    assert (await heir.finish(run.id)).result == "went on"
    assert caught == [("paint", "ValueError", "no such colour")] * 2
    assert tries == ["try"]


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (ValueError("wrong"), 1),
        (TimedOut("wrong"), 6),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("inside_a_step", [True, False], ids=["step", "body"])
async def test_an_error_nobody_catches_fails_the_run(
    room: EngineRoom, error: Exception, exit_code: int, inside_a_step: bool
) -> None:
    async def body(ctx: FlowContext, input: Any) -> None:
        async def work(step: StepContext) -> None:
            raise error

        if inside_a_step:
            await ctx.step("work", work)
        raise error

    engine = await room.open(flow(body))
    run = await engine.start("story")
    ended = await engine.finish(run.id)
    assert ended.status is RunStatus.FAILED
    assert ended.failure is not None
    assert (ended.failure.kind, ended.failure.exit_code) == (type(error).__name__, exit_code)
    assert "wrong" in ended.failure.message


async def test_passing_errors_are_tried_again_and_not_recorded(room: EngineRoom) -> None:
    tries: list[int] = []

    async def body(ctx: FlowContext, input: Any) -> int:
        async def work(step: StepContext) -> int:
            tries.append(len(tries))
            if len(tries) < 3:
                raise AgentLost("gone for a moment")
            return len(tries)

        return await ctx.step("work", work, retry=Retry(attempts=3, first_delay_seconds=0.001))

    engine = await room.open(flow(body))
    run = await engine.start("story")
    ended = await engine.finish(run.id)
    assert (ended.status, ended.result) == (RunStatus.SUCCEEDED, 3)
    steps = await (await room.store()).read(lambda view: view.steps(run.id))
    assert [(step.key, step.attempts) for step in steps] == [("work", 3)]
    broke = [event for event in await room.events(run.id) if event.body.type == "step_broke"]
    assert [event.line()["final"] for event in broke] == [False, False]


async def test_a_passing_error_out_of_the_body_leaves_a_run_that_can_be_resumed(
    room: EngineRoom,
) -> None:
    lost = [True]

    async def body(ctx: FlowContext, input: Any) -> str:
        async def work(step: StepContext) -> str:
            if lost.pop():
                lost.append(False)
                raise AgentLost("gone")
            return "back"

        return await ctx.step("work", work)

    engine = await room.open(flow(body))
    run = await engine.start("story")
    parked = await room.until_nobody_hosts(run.id)
    assert parked.status is RunStatus.RUNNING
    await engine.resume(run.id)
    assert (await engine.finish(run.id)).result == "back"


@pytest.mark.parametrize(
    "error",
    [
        NeedsHuman("say which"),
        CallInDoubt("run_x:edit:0", "write_file"),
        BudgetSpent("5 of 5 USD are spent"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_run_that_needs_a_person_stops_there_and_goes_on_when_resumed(
    room: EngineRoom, error: PodiumError
) -> None:
    answered: list[str] = []

    async def body(ctx: FlowContext, input: Any) -> str:
        async def work(step: StepContext) -> str:
            if not answered:
                raise error
            return answered[0]

        return await ctx.step("work", work)

    engine = await room.open(flow(body))
    run = await engine.start("story")
    stopped = await engine.finish(run.id)
    assert (stopped.status, stopped.owner) == (RunStatus.NEEDS_HUMAN, None)
    assert stopped.failure is not None
    assert stopped.failure.exit_code == error.exit_code
    last = (await room.events(run.id))[-1].line()
    assert (last["type"], last["reason"]) == ("run_needed_human", str(error))
    answered.append("that one")
    await engine.resume(run.id)
    assert (await engine.finish(run.id)).result == "that one"


async def test_the_same_key_asked_for_twice_is_an_error_that_names_it(room: EngineRoom) -> None:
    async def body(ctx: FlowContext, input: Any) -> str:
        async def work(step: StepContext) -> str:
            return "done"

        await ctx.step("work", work)
        return await ctx.step("work", work)

    engine = await room.open(flow(body))
    run = await engine.start("story")
    ended = await engine.finish(run.id)
    assert ended.status is not RunStatus.SUCCEEDED
    assert ended.failure is not None
    assert "'work'" in ended.failure.message
    assert "twice" in ended.failure.message


async def test_concurrent_steps_are_all_remembered(room: EngineRoom) -> None:
    done: list[str] = []
    stuck = asyncio.Event()

    async def body(ctx: FlowContext, input: Any) -> list[str]:
        def work(name: str) -> Any:
            async def inner(step: StepContext) -> str:
                if name == "slow" and not stuck.is_set():
                    stuck.set()
                    await asyncio.Event().wait()
                done.append(name)
                return name

            return inner

        names = ("first", "slow", "third")
        return list(await asyncio.gather(*(ctx.step(name, work(name)) for name in names)))

    engine = await room.open(flow(body))
    run = await engine.start("story")
    await retry_until(lambda: stuck.is_set() and len(done) == 2)
    store = await room.store()

    async def both_recorded() -> bool:
        return len(await store.read(lambda view: view.steps(run.id))) == 2

    await retry_until(both_recorded)
    await engine.abandon()
    heir = await room.open(flow(body))
    await heir.resume(run.id)
    assert (await heir.finish(run.id)).result == ["first", "slow", "third"]
    assert sorted(done) == ["first", "slow", "third"]


@pytest.mark.parametrize("killed", [True, False], ids=["killed behind it", "not killed"])
async def test_a_step_that_is_one_call_is_recorded_once_with_the_calls_settling(
    room: EngineRoom, killed: bool
) -> None:
    acts: list[str] = []
    store = await room.store()
    outcome = CallOutcome(ok=True, result={"bytes": 3})

    async def body(ctx: FlowContext, input: Any) -> Any:
        async def act(step: StepContext) -> CallOutcome:
            await store.write(lambda tx: step.checkpoint(tx, outcome))
            acts.append("settled")
            if killed:
                await asyncio.Event().wait()
            return outcome

        return (await ctx.step("act", act, returns=CallOutcome)).result

    engine = await room.open(flow(body))
    run = await engine.start("story")
    await retry_until(lambda: acts)
    if killed:
        await engine.abandon()
        engine = await room.open(flow(body))
        await engine.resume(run.id)
    assert (await engine.finish(run.id)).result == {"bytes": 3}
    assert acts == ["settled"]
    types = [event.body.type for event in await room.events(run.id)]
    assert types.count("step_completed") == 1


async def test_a_note_is_not_repeated_on_replay(room: EngineRoom) -> None:
    async def body(ctx: FlowContext, input: Any) -> None:
        async def work(step: StepContext) -> None:
            return None

        ctx.note(NoteTaken(text="before"))
        await ctx.step("work", work)
        ctx.note(NoteTaken(text="after"))
        await ctx.wait("go")

    engine = await room.open(flow(body))
    run = await engine.start("story")
    await room.until(run.id, RunStatus.WAITING)
    await engine.abandon()
    heir = await room.open(flow(body))
    await heir.resume(run.id)
    await heir.signal(run.id, "go")
    await heir.finish(run.id)
    texts = [e.body.text for e in await room.events(run.id) if isinstance(e.body, NoteTaken)]
    assert texts.count("before") == 1


async def test_runs_are_listed_by_status(room: EngineRoom) -> None:
    async def fail(ctx: FlowContext, input: Any) -> None:
        raise ValueError("no")

    engine = await room.open(GREET, FlowDefinition("fail", fail))
    good, bad = await engine.start("greet", 1), await engine.start("fail")
    queued = await engine.start("greet", 2, queue="work")
    for run in (good, bad):
        await engine.finish(run.id)

    async def listed(*statuses: RunStatus) -> list[str]:
        return [run.id for run in await engine.runs(RunQuery(statuses=statuses))]

    assert await listed(RunStatus.SUCCEEDED) == [good.id]
    assert await listed(RunStatus.FAILED) == [bad.id]
    assert await listed(RunStatus.QUEUED) == [queued.id]
    assert await listed() == [queued.id, bad.id, good.id]
