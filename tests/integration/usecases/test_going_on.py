"""Cancel, resume and retry, on a real engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podium.app.run_control import cancel, resume, retry, see_through
from podium.core.errors import BadInput, FlowUnknown, NotPossibleNow, UnknownId
from podium.core.ids import short_id
from podium.core.work import Run, RunStatus
from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.ports import FlowContext, StepContext
from tests.unit.usecases.scene import Scene


class Story:
    """A flow of two steps around a wait, which counts how often each was done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broken = False

    async def body(self, ctx: FlowContext, _input: object) -> str:
        await ctx.step("first", self._first)
        await ctx.wait("go")
        await ctx.step("last", self._last)
        return "done"

    async def _first(self, step: StepContext) -> None:
        self.done.append("first")

    async def _last(self, step: StepContext) -> None:
        self.done.append("last")
        if self.broken:
            raise ValueError("no luck")


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
async def engine(scene: Scene, story: Story, tmp_path: Path) -> AsyncIterator[LocalEngine]:
    engine = new_engine(scene, tmp_path)
    engine.register(FlowDefinition("story", story.body))
    yield engine
    await engine.close()


def new_engine(scene: Scene, folder: Path) -> LocalEngine:
    return LocalEngine(
        scene.store, clock=scene.clock, ids=scene.ids, presence=FolderPresence(folder)
    )


async def waiting_run(engine: LocalEngine) -> Run:
    run = await engine.start("story")
    return await see_through(engine, run)


async def test_seeing_a_run_through_stops_where_it_waits(engine: LocalEngine) -> None:
    assert (await waiting_run(engine)).status is RunStatus.WAITING


async def test_a_resumed_run_does_not_do_its_first_step_again(
    scene: Scene, story: Story, engine: LocalEngine, tmp_path: Path
) -> None:
    run = await waiting_run(engine)
    await engine.close()
    await engine.signal(run.id, "go")
    other = new_engine(scene, tmp_path)
    other.register(FlowDefinition("story", story.body))
    ended = await see_through(other, await resume(scene.store, other, short_id(run.id)))
    await other.close()
    assert ended.status is RunStatus.SUCCEEDED
    assert story.done == ["first", "last"]


async def test_a_run_of_a_flow_that_is_not_here_cannot_be_resumed(
    scene: Scene, engine: LocalEngine, tmp_path: Path
) -> None:
    run = await waiting_run(engine)
    await engine.close()
    other = new_engine(scene, tmp_path)
    with pytest.raises(FlowUnknown, match="no flow 'story'"):
        await resume(scene.store, other, run.id)
    await other.close()


async def test_a_failed_run_goes_again_from_the_step_that_is_named(
    scene: Scene, story: Story, engine: LocalEngine
) -> None:
    story.broken = True
    run = await waiting_run(engine)
    await engine.signal(run.id, "go")
    assert (await engine.finish(run.id)).status is RunStatus.FAILED
    story.broken = False
    with pytest.raises(BadInput, match="has no step 'nowhere'; its steps: first"):
        await retry(scene.store, engine, run.id, from_step="nowhere", by="ann")
    steps = await scene.store.read(lambda view: [step.key for step in view.steps(run.id)])
    again = await retry(scene.store, engine, run.id, from_step=steps[-1], by="ann")
    assert (await see_through(engine, again)).status is RunStatus.SUCCEEDED
    assert story.done == ["first", "last", "last"]


async def test_a_cancelled_run_has_ended(scene: Scene, engine: LocalEngine) -> None:
    run = await waiting_run(engine)
    await cancel(scene.store, engine, short_id(run.id), by="ann", why="enough")
    ended = await see_through(engine, run, wait=True)
    assert ended.status is RunStatus.CANCELLED
    with pytest.raises(NotPossibleNow, match="cancelled already"):
        await cancel(scene.store, engine, run.id, by="ann")


async def test_runs_that_are_not_there_are_unknown_to_all_three(
    scene: Scene, engine: LocalEngine
) -> None:
    with pytest.raises(UnknownId):
        await cancel(scene.store, engine, "deadbeef", by="ann")
    with pytest.raises(UnknownId):
        await resume(scene.store, engine, "deadbeef")
    with pytest.raises(UnknownId):
        await retry(scene.store, engine, "deadbeef", by="ann")


async def test_a_run_that_asked_a_person_hears_what_they_say(
    scene: Scene, engine: LocalEngine
) -> None:
    async def asking(ctx: FlowContext, _input: object) -> list[str]:
        answer = await ctx.ask_person("how", "which name?")
        return [str(answer.payload), answer.sent_by]

    engine.register(FlowDefinition("asking", asking))
    begun = await engine.start("asking")
    await see_through(engine, begun)
    await engine.close()
    resumed = await resume(scene.store, engine, begun.id, note="the old one", by="ann")
    assert (await see_through(engine, resumed)).result == ["the old one", "ann"]
