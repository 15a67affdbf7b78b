"""Contract of every `Engine`: ending a run early and retrying it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.events import RunCancelRequested, RunRetried
from podium.core.work import QueueSpec, Run, RunStatus
from podium.engine import FlowDefinition
from podium.ports import FlowContext, RunQuery, StepContext
from podium.testing import retry_until
from tests.integration.contract.engines import EngineRoom


async def wait_for_ever(ctx: FlowContext, input: Any) -> None:
    await ctx.wait("never")


async def ask_somebody(ctx: FlowContext, input: Any) -> None:
    await ctx.ask_person("look", "somebody must look")


WAIT = FlowDefinition("wait", wait_for_ever)
ASK = FlowDefinition("ask", ask_somebody)


class Stubborn:
    """A flow whose step takes its time to end when it is told to."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.may_end = asyncio.Event()
        self.flow = FlowDefinition("stubborn", self.body)

    async def body(self, ctx: FlowContext, input: Any) -> None:
        await ctx.step("work", self.work)
        self.story.append("went on")

    async def work(self, step: StepContext) -> None:
        self.story.append("began")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.story.append("told")
            await asyncio.wait_for(self.may_end.wait(), 120)
            self.story.append("ended")
            raise


async def test_a_cancelled_run_is_cancelled_only_when_its_step_has_ended(room: EngineRoom) -> None:
    stubborn = Stubborn()
    engine, other = await room.open(stubborn.flow), await room.open()
    run = await engine.start("stubborn")
    await retry_until(lambda: stubborn.story)
    wished = await other.cancel(run.id, by="ada", why="wrong task")
    assert (wished.cancel_requested, wished.status) == (True, RunStatus.RUNNING)
    await retry_until(lambda: "told" in stubborn.story)
    assert (await room.run(run.id)).status is RunStatus.RUNNING
    stubborn.may_end.set()
    ended = await other.finish(run.id)
    assert (ended.status, ended.owner) == (RunStatus.CANCELLED, None)
    assert ended.finished_at is not None
    assert stubborn.story == ["began", "told", "ended"]
    bodies = [event.body for event in await room.events(run.id)]
    assert RunCancelRequested(by="ada", why="wrong task") in bodies
    assert bodies[-1].type == "run_cancelled"
    assert await (await room.store()).read(lambda view: view.steps(run.id)) == []


async def test_the_end_of_a_run_is_seen_though_its_process_went_right_after_it(
    room: EngineRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubborn = Stubborn()
    stubborn.may_end.set()
    engine, other = await room.open(stubborn.flow), await room.open()
    run = await engine.start("stubborn")
    await retry_until(lambda: stubborn.story)

    async def ends_and_goes(run: Run) -> bool:
        await other.cancel(run.id, by="ada")
        await engine.finish(run.id)
        return False

    # Between two looks of who stays with it, where nothing else can get in by a test's will.
    monkeypatch.setattr(other, "_is_served", ends_and_goes)
    assert (await other.finish(run.id)).status is RunStatus.CANCELLED


async def test_a_waiting_run_is_cancelled(room: EngineRoom) -> None:
    engine, other = await room.open(WAIT), await room.open()
    run = await engine.start("wait")
    await room.until(run.id, RunStatus.WAITING)
    await other.cancel(run.id, by="ada")
    assert (await engine.finish(run.id)).status is RunStatus.CANCELLED


async def test_a_run_that_asks_a_person_is_cancelled(room: EngineRoom) -> None:
    engine, other = await room.open(ASK), await room.open()
    run = await engine.start("ask")
    await room.until(run.id, RunStatus.NEEDS_HUMAN)
    await other.cancel(run.id, by="ada")
    await room.until(run.id, RunStatus.CANCELLED)


async def test_a_queued_run_is_cancelled_at_once_and_never_claimed(room: EngineRoom) -> None:
    stubborn = Stubborn()
    engine = await room.open(stubborn.flow, WAIT)
    run = await engine.start("stubborn", queue="work")
    assert (await engine.cancel(run.id, by="ada")).status is RunStatus.CANCELLED
    async with engine.serve([QueueSpec(name="work")]):
        other = await engine.start("wait", queue="work")
        await room.until(other.id, RunStatus.WAITING)
    assert stubborn.story == []
    assert (await engine.finish(run.id)).status is RunStatus.CANCELLED


async def test_a_run_nobody_hosts_is_cancelled_at_once(room: EngineRoom) -> None:
    engine, other = await room.open(WAIT), await room.open()
    dead = await engine.start("wait")
    await room.until(dead.id, RunStatus.WAITING)
    await engine.abandon()
    ended = await other.cancel(dead.id, by="ada")
    assert (ended.status, ended.owner) == (RunStatus.CANCELLED, None)


async def test_a_body_that_swallows_its_cancellation_gets_no_further(room: EngineRoom) -> None:
    done: list[str] = []
    began = asyncio.Event()

    async def body(ctx: FlowContext, input: Any) -> str:
        async def first(step: StepContext) -> None:
            began.set()
            await asyncio.Event().wait()

        async def second(step: StepContext) -> None:
            done.append("second")

        try:
            await ctx.step("first", first)
        except asyncio.CancelledError:
            await ctx.step("second", second)
        return "as if nothing happened"

    engine = await room.open(FlowDefinition("story", body))
    run = await engine.start("story")
    await asyncio.wait_for(began.wait(), 120)
    await engine.cancel(run.id, by="ada")
    assert (await engine.finish(run.id)).status is RunStatus.CANCELLED
    assert done == []


async def test_an_ended_run_cannot_be_cancelled(room: EngineRoom) -> None:
    engine = await room.open(WAIT)
    run = await engine.start("wait", queue="work")
    await engine.cancel(run.id, by="ada")
    with pytest.raises(NotPossibleNow, match="cancelled"):
        await engine.cancel(run.id, by="ada")


async def test_children_are_cancelled_with_their_parent(room: EngineRoom) -> None:
    async def parent(ctx: FlowContext, input: Any) -> None:
        await ctx.child(await ctx.start_child("part", "wait", None, queue="work"))

    engine = await room.open(WAIT, FlowDefinition("parent", parent))
    run = await engine.start("parent")
    await room.until(run.id, RunStatus.WAITING)
    await engine.cancel(run.id, by="ada")
    await engine.finish(run.id)
    (child,) = await engine.runs(RunQuery(parent_id=run.id))
    assert (await engine.finish(child.id)).status is RunStatus.CANCELLED


class Recipe:
    """A flow of three steps whose last one fails as long as it is told to."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broken = True
        self.flow = FlowDefinition("recipe", self.body)

    async def body(self, ctx: FlowContext, input: Any) -> list[str]:
        return [await ctx.step(name, self.work) for name in ("mix", "bake", "serve")]

    async def work(self, step: StepContext) -> str:
        self.done.append(step.key)
        if step.key == "serve" and self.broken:
            raise ValueError("dropped it")
        return step.key


async def test_retry_does_the_failed_step_again_and_keeps_the_others(room: EngineRoom) -> None:
    recipe = Recipe()
    engine = await room.open(recipe.flow)
    run = await engine.start("recipe")
    assert (await engine.finish(run.id)).status is RunStatus.FAILED
    recipe.broken = False
    again = await engine.retry(run.id, by="ada")
    assert (again.status, again.failure) == (RunStatus.RUNNING, None)
    ended = await engine.finish(run.id)
    assert (ended.status, ended.result) == (RunStatus.SUCCEEDED, ["mix", "bake", "serve"])
    assert recipe.done == ["mix", "bake", "serve", "serve"]
    bodies = [event.body for event in await room.events(run.id)]
    assert RunRetried(by="ada", discarded_steps=("serve",)) in bodies
    assert "run_failed" in [body.type for body in bodies]


async def test_retry_from_a_step_forgets_it_and_all_after_it(room: EngineRoom) -> None:
    recipe = Recipe()
    engine = await room.open(recipe.flow)
    run = await engine.start("recipe")
    await engine.finish(run.id)
    recipe.broken = False
    await engine.retry(run.id, from_step="bake", by="ada")
    await engine.finish(run.id)
    assert recipe.done == ["mix", "bake", "serve", "bake", "serve"]


async def test_retry_from_a_step_that_is_not_recorded_changes_nothing(room: EngineRoom) -> None:
    recipe = Recipe()
    engine = await room.open(recipe.flow)
    run = await engine.start("recipe")
    failed = await engine.finish(run.id)
    with pytest.raises(BadInput, match="'fry'"):
        await engine.retry(run.id, from_step="fry")
    assert await room.run(run.id) == failed


async def test_a_cancelled_run_can_be_retried(room: EngineRoom) -> None:
    recipe = Recipe()
    recipe.broken = False
    engine = await room.open(recipe.flow)
    run = await engine.start("recipe", queue="work")
    await engine.cancel(run.id, by="ada")
    await engine.retry(run.id, by="ada")
    assert (await engine.finish(run.id)).status is RunStatus.SUCCEEDED
