"""Workers, queue status and progress of runs, as seen on a real engine."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from podium.app import workload as watching
from podium.app.workload import WorkWatch, see_queues, see_workers
from podium.core.decisions import Usage, counts_of
from podium.core.events import RunStarted, StepCompleted, StepStarted, UsageRecorded
from podium.core.ids import short_id
from podium.core.work import QueueSpec, Run, RunStatus, WorkerHeartbeat
from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.ports import Engine, FlowContext, StepContext, Store, StoreView, Transaction
from podium.testing import retry_until
from tests.unit.usecases.scene import Scene

T = TypeVar("T")

WORK = QueueSpec(name="work")


@pytest.fixture
async def engine(scene: Scene, tmp_path: Path) -> AsyncIterator[LocalEngine]:
    """One that hosts a flow which stays in its first step."""

    async def stay(step: StepContext) -> None:
        await asyncio.Event().wait()

    async def body(ctx: FlowContext, _input: object) -> None:
        await ctx.step("stay", stay)

    presence = FolderPresence(tmp_path)
    engine = LocalEngine(scene.store, clock=scene.clock, ids=scene.ids, presence=presence)
    engine.register(FlowDefinition("staying", body))
    yield engine
    await engine.close()


def asked(engine: Engine) -> Callable[[], Any]:
    async def give() -> Engine:
        return engine

    return give


async def save(scene: Scene, *runs: Run) -> None:
    def work(tx: Transaction) -> None:
        for run in runs:
            tx.save_run(run)

    await scene.store.write(work)


def a_run(scene: Scene, **changes: Any) -> Run:
    complete: dict[str, Any] = {
        "id": scene.ids.new("run"),
        "flow": "staying",
        "created_at": scene.clock.now(),
    }
    return Run(**complete | changes)


def a_heartbeat(scene: Scene, worker_id: str, **changes: Any) -> WorkerHeartbeat:
    now = scene.clock.now()
    complete: dict[str, Any] = {
        "id": worker_id,
        "host": "far",
        "pid": 7,
        "started_at": now,
        "beat_at": now,
    }
    return WorkerHeartbeat(**complete | changes)


async def test_a_worker_alive_is_seen_with_the_runs_it_holds(
    scene: Scene, engine: LocalEngine
) -> None:
    run = await engine.start("staying", task="stay there", queue="work")
    async with engine.serve([WORK]):

        async def holds() -> bool:
            seen = await see_workers(scene.store, asked(engine))
            return bool(seen.workers and seen.workers[0].holds)

        await retry_until(holds)
        [worker] = (await see_workers(scene.store, asked(engine))).workers
    assert (worker.id, worker.alive) == (engine.worker_id, True)
    assert worker.beat is not None
    assert worker.beat.queues == ("work",)
    [held] = worker.holds
    assert (held.run_id, held.flow, held.task) == (run.id, "staying", "stay there")
    assert (held.since, held.next) == (scene.clock.now(), "")


async def test_the_dead_are_seen_while_they_own_runs_with_what_becomes_of_these(
    scene: Scene, engine: LocalEngine
) -> None:
    gone = {"status": RunStatus.RUNNING, "owner": "wrk_gone", "fence": 1}
    mine = a_run(scene, **gone)
    queued = a_run(scene, **gone, queue="work", pinned_to="far")
    unserved = a_run(scene, **gone | {"owner": "wrk_never"}, queue="other")
    await save(scene, mine, queued, unserved)

    def heartbeats(tx: Transaction) -> None:
        tx.save_worker(a_heartbeat(scene, "wrk_gone"))
        tx.save_worker(a_heartbeat(scene, "wrk_idle_and_dead"))

    await scene.store.write(heartbeats)
    engine_serving = a_heartbeat(scene, engine.worker_id, queues=("work",))
    await scene.store.write(lambda tx: tx.save_worker(engine_serving))
    seen = {worker.id: worker for worker in (await see_workers(scene.store, asked(engine))).workers}
    assert set(seen) == {engine.worker_id, "wrk_gone", "wrk_never"}
    assert not seen["wrk_gone"].alive
    assert seen["wrk_gone"].beat is not None
    assert seen["wrk_never"].beat is None
    next_of = {held.run_id: held.next for item in seen.values() for held in item.holds}
    assert f"podium resume {short_id(mine.id)}" in next_of[mine.id]
    assert next_of[queued.id].startswith("a worker of queue `work` takes it over")
    assert "far" in next_of[queued.id]
    assert "none is running now" in next_of[unserved.id]


async def test_every_queue_of_the_settings_and_every_other_with_runs_is_seen(
    scene: Scene, engine: LocalEngine
) -> None:
    ended = scene.clock.now() - timedelta(seconds=59)
    await save(
        scene,
        a_run(scene, queue="work"),
        a_run(scene, queue="work", status=RunStatus.SUCCEEDED, finished_at=ended),
        a_run(
            scene,
            queue="work",
            status=RunStatus.FAILED,
            finished_at=ended - timedelta(seconds=2),
        ),
        a_run(scene, queue="stray", status=RunStatus.NEEDS_HUMAN),
    )
    empty = QueueSpec(name="empty", concurrency=2)
    seen = (await see_queues(scene.store, asked(engine), [empty, WORK])).queues
    assert [(item.name, item.configured) for item in seen] == [
        ("empty", True),
        ("work", True),
        ("stray", False),
    ]
    assert [item.tally.queued for item in seen] == [0, 1, 0]
    assert [item.ended_lately for item in seen] == [0, 1, 0]
    # What waits for a person needs no worker yet, and what is empty none at all.
    assert [bool(item.trouble) for item in seen] == [False, True, False]
    record = seen[0].record()
    assert (record["name"], record["concurrency"], record["queued"]) == ("empty", 2, 0)


@pytest.mark.parametrize(
    ("spec", "configured", "words"),
    [
        (
            QueueSpec(name="gpu", labels=("gpu",)),
            True,
            "no worker is running for `gpu`: start `podium worker --queue gpu --label gpu`",
        ),
        (
            QueueSpec(name="my work", labels=("a b", "repo=app")),
            True,
            "no worker is running for `my work`: "
            "start `podium worker --queue 'my work' --label 'a b,repo=app'`",
        ),
        (
            QueueSpec(name="stray"),
            False,
            "no worker is running for `stray`: add it under `queues:` in podium.yaml and "
            "start `podium worker --queue stray`",
        ),
    ],
)
async def test_a_queue_nobody_serves_says_what_to_start(
    scene: Scene, engine: LocalEngine, spec: QueueSpec, configured: bool, words: str
) -> None:
    await save(scene, a_run(scene, queue=spec.name))
    specs = [spec] if configured else []
    [seen] = (await see_queues(scene.store, asked(engine), specs)).queues
    assert seen.trouble == words


async def test_a_worker_without_the_labels_of_a_queue_does_not_serve_it(
    scene: Scene, engine: LocalEngine
) -> None:
    spec = QueueSpec(name="work", labels=("gpu", "repo=app"))
    await save(scene, a_run(scene, queue="work"))

    async def served_with(*labels: str) -> tuple[str, ...]:
        heartbeat = a_heartbeat(scene, engine.worker_id, queues=("work",), labels=labels)
        await scene.store.write(lambda tx: tx.save_worker(heartbeat))
        [seen] = (await see_queues(scene.store, asked(engine), [spec])).queues
        assert bool(seen.trouble) is not bool(seen.served_by)
        return seen.served_by

    assert await served_with("gpu") == ()
    assert await served_with("repo=app", "gpu", "more") == (engine.worker_id,)


class Counting:
    """A store whose views count what is asked of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    async def read(self, work: Callable[[StoreView], T]) -> T:
        return await self._store.read(
            lambda view: work(cast(StoreView, _Counted(view, self.asked)))
        )


class _Counted:
    def __init__(self, view: StoreView, asked: Counter[str]) -> None:
        self._view = view
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        self._asked[name] += name != "now"
        return getattr(self._view, name)


def running(scene: Scene) -> Run:
    return a_run(scene, status=RunStatus.RUNNING, owner="wrk_a", fence=1)


async def append(scene: Scene, run: Run, *bodies: Any) -> None:
    def work(tx: Transaction) -> None:
        for body in bodies:
            tx.append(run.id, body)
            if isinstance(body, UsageRecorded):
                for counter, amount in counts_of(body.usage, run.id, "s", scene.clock.now()):
                    tx.count(counter, scene.clock.now(), amount)

    await scene.store.write(work)


def used(usd: float) -> UsageRecorded:
    return UsageRecorded(source="agent:x", usage=Usage(usd=usd))


async def test_the_step_and_cost_of_a_run_are_known_at_the_first_look_and_followed(
    scene: Scene, engine: LocalEngine
) -> None:
    run = running(scene)
    await save(scene, run)
    await append(scene, run, StepStarted(step="plan#0"), StepCompleted(step="plan#0"), used(0.25))
    await append(scene, run, StepStarted(step="develop#1"))
    watch = WorkWatch(scene.store, asked(engine), [])
    [seen] = (await watch.look()).runs
    assert (seen.step, seen.step_since, seen.usd) == ("develop#1", scene.clock.now(), 0.25)
    assert not seen.hosted
    scene.clock.advance(3)
    await append(scene, run, used(0.5), StepCompleted(step="develop#1"), StepStarted(step="test#2"))
    [seen] = (await watch.look()).runs
    assert (seen.step, seen.step_since, seen.usd) == ("test#2", scene.clock.now(), 0.75)
    await append(scene, run, StepCompleted(step="test#2"))
    [seen] = (await watch.look()).runs
    assert (seen.step, seen.step_since) == ("", None)


async def test_of_steps_side_by_side_the_last_begun_is_shown_until_it_ends(
    scene: Scene, engine: LocalEngine
) -> None:
    run = running(scene)
    await save(scene, run)
    await append(scene, run, StepStarted(step="left#0"), StepStarted(step="right#0"))
    watch = WorkWatch(scene.store, asked(engine), [])
    assert [item.step for item in (await watch.look()).runs] == ["right#0"]
    await append(scene, run, StepCompleted(step="right#0"))
    assert [item.step for item in (await watch.look()).runs] == ["left#0"]


async def test_a_look_costs_few_queries_however_many_runs_come_and_go(
    scene: Scene, engine: LocalEngine
) -> None:
    store = Counting(scene.store)
    await save(scene, *(running(scene) for _ in range(20)))
    watch = WorkWatch(cast(Store, store), asked(engine), [WORK])
    await watch.look()
    for _ in range(3):
        for _ in range(20):
            run = running(scene)
            await save(scene, run)
            started = RunStarted(owner="wrk_a", fence=1)
            await append(scene, run, started, StepStarted(step="one#0"), used(1.0))
        store.asked.clear()
        seen = await watch.look()
        assert store.asked.total() <= 8, store.asked
        assert [(item.step, item.usd) for item in seen.runs[:20]] == [("one#0", 1.0)] * 20


async def test_a_flood_of_events_is_passed_over_and_its_runs_are_learnt_again(
    scene: Scene, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A thousand real events would prove no more.
    monkeypatch.setattr(watching, "MAX_EVENTS", 5)
    store = Counting(scene.store)
    runs = [running(scene) for _ in range(4)]
    await save(scene, *runs)
    watch = WorkWatch(cast(Store, store), asked(engine), [])
    await watch.look()
    for run in runs:
        await append(scene, run, StepStarted(step="a#0"), used(2.0), StepStarted(step="b#1"))
    store.asked.clear()
    first = (await watch.look()).runs
    assert [item.step for item in first].count("b#1") == watching.LOOKED_UP
    assert [item.usd for item in first].count(None) == 1
    assert store.asked["events"] == 1 + watching.LOOKED_UP
    assert {(item.step, item.usd) for item in (await watch.look()).runs} == {("b#1", 2.0)}


async def test_more_running_runs_than_are_shown_are_mentioned(
    scene: Scene, engine: LocalEngine
) -> None:
    runs = [running(scene) for _ in range(3)]
    await save(scene, *runs)
    seen = await WorkWatch(scene.store, asked(engine), [], most_runs=2).look()
    assert [run.run_id for run in seen.runs] == [runs[2].id, runs[1].id]
    assert seen.more_runs
    assert not (await WorkWatch(scene.store, asked(engine), [], most_runs=3).look()).more_runs
