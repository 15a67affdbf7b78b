"""Which host gets which run: pins, lost hosts, versions side by side, labels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.domain.errors import BadInput
from podium.domain.work import QueueSpec, Run, RunStatus, WorkerBeat
from podium.engine import EngineSettings, FlowDefinition
from podium.engine.distributed import DbosEngine, enqueue
from podium.journal.postgres_presence import PostgresPresence
from podium.journal.postgres_store import PostgresStore
from podium.ports import Store
from podium.testing import retry_until
from podium.wiring.clock import SystemClock, SystemIds

WORK = QueueSpec(name="work")


class Hosts:
    """Engines that call themselves by the names of machines, on one database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self._engines: list[DbosEngine] = []
        self._stores: list[PostgresStore] = []
        self.seen: list[str] = []
        """Where the steps of runs were done."""

    async def open(self, host: str, *flows: FlowDefinition, labels: tuple[str, ...] = ()) -> Any:
        store = await PostgresStore.open(
            self.url,
            folder=self._folder / host,
            clock=SystemClock(),
            ids=SystemIds(),
            queued=enqueue,
        )
        engine = DbosEngine(
            store,
            url=self.url,
            clock=SystemClock(),
            ids=SystemIds(),
            presence=PostgresPresence(self.url, host, young_seconds=0.0),
            settings=EngineSettings(
                lease_seconds=2.0, beat_seconds=0.5, tick_seconds=0.1, labels=labels
            ),
            host=host,
        )
        for flow in flows or (self.flow(host),):
            engine.register(flow)
        self._engines.append(engine)
        self._stores.append(store)
        return engine

    def flow(self, host: str, version: int = 1) -> FlowDefinition:
        """Two steps; the first is followed by a pin and a wait."""

        async def body(ctx: Any, input: Any) -> Any:
            async def do(step: Any) -> str:
                self.seen.append(host)
                return host

            first = await ctx.step("first", do)
            await ctx.pin()
            await ctx.wait("go")
            return [first, await ctx.step("second", do), version]

        return FlowDefinition("stay", body, version=version)

    @property
    def store(self) -> Store:
        return self._stores[-1]

    async def run(self, run_id: str) -> Run:
        found = await self.store.read(lambda view: view.run(run_id))
        assert found is not None
        return found

    async def until(self, run_id: str, status: RunStatus) -> Run:
        async def look() -> Run | None:
            run = await self.run(run_id)
            return run if run.status is status and run.owner is None else None

        found = await retry_until(look, seconds=30)
        assert found is not None
        return found

    async def close(self) -> None:
        for engine in self._engines:
            await engine.close()
        for store in self._stores:
            await store.close()


@pytest.fixture
async def hosts(dispatched_url: str, tmp_path: Path) -> AsyncIterator[Hosts]:
    hosts = Hosts(dispatched_url, tmp_path)
    yield hosts
    await hosts.close()


async def test_a_pinned_run_goes_on_where_it_was_although_others_are_idle(hosts: Hosts) -> None:
    ape, bee = await hosts.open("ape"), await hosts.open("bee")
    async with ape.serve([WORK]):
        run = await bee.start("stay", queue="work")
        waiting = await hosts.until(run.id, RunStatus.WAITING)
        assert waiting.pinned_to == "ape"
        async with bee.serve([WORK]):
            await bee.signal(run.id, "go")
            ended = await bee.finish(run.id)
    assert ended.result == ["ape", "ape", 1]


async def test_a_run_of_a_lost_host_goes_on_on_another_and_says_so(hosts: Hosts) -> None:
    ape, bee = await hosts.open("ape"), await hosts.open("bee")
    async with ape.serve([WORK]):
        run = await bee.start("stay", queue="work")
        await hosts.until(run.id, RunStatus.WAITING)
        await ape.abandon()
    async with bee.serve([WORK]):
        await bee.signal(run.id, "go")
        ended = await bee.finish(run.id)
    assert ended.result == ["ape", "bee", 1]
    assert ended.pinned_to == "bee"
    from podium.ports import EventQuery

    query = EventQuery(run_id=run.id, types=("run_unpinned",))
    [lost] = await hosts.store.read(lambda view: view.events(query))
    assert "ape" in lost.body.model_dump_json()


async def test_two_versions_of_a_flow_run_side_by_side_each_on_its_own_code(hosts: Hosts) -> None:
    old = await hosts.open("ape", hosts.flow("ape", version=1))
    new = await hosts.open("bee", hosts.flow("bee", version=2))
    async with old.serve([WORK]), new.serve([WORK]):
        first, second = (
            await old.start("stay", queue="work"),
            await new.start("stay", queue="work"),
        )
        for run in (first, second):
            await new.signal(run.id, "go")
        results = [(await new.finish(run.id)).result for run in (first, second)]
    assert results == [["ape", "ape", 1], ["bee", "bee", 2]]


async def test_a_run_whose_version_no_worker_has_any_more_asks_for_a_person(hosts: Hosts) -> None:
    old = await hosts.open("ape", hosts.flow("ape", version=1))
    run = await old.start("stay", queue="work")
    new = await hosts.open("bee", hosts.flow("bee", version=2))
    async with new.serve([WORK]):
        asking = await hosts.until(run.id, RunStatus.NEEDS_HUMAN)
    assert asking.failure is not None
    assert "version 1 of flow 'stay'" in asking.failure.message
    assert "start a worker" in asking.failure.message


async def test_a_queue_is_served_only_by_workers_that_offer_its_labels(hosts: Hosts) -> None:
    plain = await hosts.open("ape")
    fitting = await hosts.open("bee", labels=("gpu", "repo=app"))
    special = QueueSpec(name="work", labels=("gpu",))
    with pytest.raises(BadInput, match="label 'gpu'"):
        async with plain.serve([special]):
            pass
    async with fitting.serve([special]):
        run = await plain.start("stay", queue="work")
        await plain.signal(run.id, "go")
        assert (await plain.finish(run.id)).result == ["bee", "bee", 1]


async def test_a_run_that_dbos_does_not_know_is_handed_to_it(hosts: Hosts) -> None:
    # As after a copy by other means than `podium db copy`: the row is there, the workflow is not.
    engine = await hosts.open("ape")
    run = await engine.start("stay", queue="work")
    import psycopg

    with psycopg.connect(hosts.url) as connection:
        connection.execute("DELETE FROM dbos.workflow_status")
    async with engine.serve([WORK]):
        await engine.signal(run.id, "go")
        assert (await engine.finish(run.id)).result == ["ape", "ape", 1]


async def test_the_beats_of_the_dead_are_forgotten_once_nothing_of_theirs_is_left(
    hosts: Hosts,
) -> None:
    engine = await hosts.open("ape")
    now = SystemClock().now()
    dead = WorkerBeat(
        id="wrk_dead", host="far", pid=1, started_at=now, beat_at=now - timedelta(minutes=5)
    )
    await hosts.store.write(lambda tx: tx.save_worker(dead))
    async with engine.serve([WORK]):

        async def gone() -> bool:
            beats = await hosts.store.read(lambda view: view.workers())
            return all(beat.id != "wrk_dead" for beat in beats)

        assert await retry_until(gone, seconds=30)


async def test_a_claim_whose_answer_was_lost_is_hosted_all_the_same(hosts: Hosts) -> None:
    engine = await hosts.open("ape")
    write, lost = engine._store.write, asyncio.Event()

    async def forgetful(work: Any) -> Any:
        answer = await write(work)
        if isinstance(answer, list) and answer and not lost.is_set():
            lost.set()
            raise asyncio.CancelledError
        return answer

    engine._store.write = forgetful
    async with engine.serve([WORK]):
        run = await engine.start("stay", queue="work")
        await engine.signal(run.id, "go")
        ended = await engine.finish(run.id)
    assert lost.is_set()
    assert ended.result == ["ape", "ape", 1]
