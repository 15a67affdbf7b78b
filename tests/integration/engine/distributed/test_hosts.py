"""Assignment of runs to hosts: pins, lost hosts, versions side by side, labels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from podium.core.errors import BadInput, StoreAway
from podium.core.work import QueueSpec, Run, RunStatus, Schedule, WorkerHeartbeat
from podium.engine import EngineSettings, FlowDefinition
from podium.engine.distributed import DbosEngine, enqueue
from podium.engine.distributed.database import DbosClaim, DbosDatabase
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import EventQuery, Store
from podium.store.postgres_presence import PostgresPresence
from podium.store.postgres_store import PostgresStore
from podium.testing import retry_until

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

    async def open(
        self, host: str, *flows: FlowDefinition, labels: tuple[str, ...] = (), hasty: bool = False
    ) -> Any:
        """A hasty one gives up others that a busy machine kept from beating for a while."""
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
                lease_seconds=2.0 if hasty else 120.0,
                heartbeat_seconds=0.5,
                tick_seconds=0.1,
                responsive_seconds=1.0 if hasty else 60.0,
                pin_seconds=3.0 if hasty else 120.0,
                labels=labels,
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

        found = await retry_until(look)
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
    ape, bee = await hosts.open("ape"), await hosts.open("bee", hasty=True)
    async with ape.serve([WORK]):
        run = await bee.start("stay", queue="work")
        await hosts.until(run.id, RunStatus.WAITING)
        await ape.abandon()
    async with bee.serve([WORK]):
        await bee.signal(run.id, "go")
        ended = await bee.finish(run.id)
    assert ended.result == ["ape", "bee", 1]
    assert ended.pinned_to == "bee"
    query = EventQuery(run_id=run.id, types=("run_unpinned",))
    [lost] = await hosts.store.read(lambda view: view.events(query))
    assert "ape" in lost.body.model_dump_json()


async def test_two_versions_of_a_flow_run_side_by_side_on_their_own_code(hosts: Hosts) -> None:
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
    with psycopg.connect(hosts.url) as connection:
        connection.execute("DELETE FROM dbos.workflow_status")
    async with engine.serve([WORK]):
        await engine.signal(run.id, "go")
        assert (await engine.finish(run.id)).result == ["ape", "ape", 1]


async def test_heartbeats_of_the_dead_are_forgotten_once_nothing_of_theirs_is_left(
    hosts: Hosts,
) -> None:
    engine = await hosts.open("ape")
    now = SystemClock().now()
    dead = WorkerHeartbeat(
        id="wrk_dead", host="far", pid=1, started_at=now, beat_at=now - timedelta(minutes=5)
    )
    await hosts.store.write(lambda tx: tx.save_worker(dead))
    async with engine.serve([WORK]):

        async def gone() -> bool:
            heartbeats = await hosts.store.read(lambda view: view.workers())
            return all(heartbeat.id != "wrk_dead" for heartbeat in heartbeats)

        assert await retry_until(gone)


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


@pytest.mark.soak
async def test_a_host_whose_worker_is_started_again_gets_its_pinned_runs_back(hosts: Hosts) -> None:
    ape, bee = await hosts.open("ape"), await hosts.open("bee")
    async with bee.serve([WORK]):
        run = await bee.start("stay", queue="work")
        await hosts.until(run.id, RunStatus.WAITING)
        assert (await hosts.run(run.id)).pinned_to == "bee"
    async with ape.serve([WORK]):
        await ape.signal(run.id, "go")
        again = await hosts.open("bee")
        async with again.serve([WORK]):
            assert (await again.finish(run.id)).result == ["bee", "bee", 1]


@pytest.mark.soak
async def test_worker_whose_mark_is_cut_but_sends_heartbeats_keeps_its_runs(hosts: Hosts) -> None:
    bodies, may_end = 0, asyncio.Event()

    async def body(ctx: Any, input: Any) -> str:
        async def work(step: Any) -> str:
            nonlocal bodies
            bodies += 1
            await may_end.wait()
            return "done"

        return str(await ctx.step("work", work))

    flow = FlowDefinition("long", body)
    owner, other = await hosts.open("ape", flow), await hosts.open("bee", flow)
    async with owner.serve([WORK]):
        run = await owner.start("long", queue="work")
        await retry_until(lambda: bodies)
        async with other.serve([WORK]):
            for _ in range(5):
                with psycopg.connect(hosts.url) as connection:
                    # Of this database alone: others on the server hold such locks too, to migrate.
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                        "AND objsubid = 1 AND pid <> pg_backend_pid() AND database = "
                        "(SELECT oid FROM pg_database WHERE datname = current_database())"
                    )
                await asyncio.sleep(0.2)
            held = await hosts.run(run.id)
            may_end.set()
            assert (await other.finish(run.id)).result == "done"
    assert (held.owner, held.fence, bodies) == (owner.worker_id, 1, 1)


async def test_a_run_that_comes_back_to_its_worker_waits_for_its_older_body_to_end(
    hosts: Hosts,
) -> None:
    at_work = most = 0
    may_end = asyncio.Event()

    async def body(ctx: Any, input: Any) -> str:
        async def work(step: Any) -> str:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0.3)
                raise
            finally:
                at_work -= 1
            return "done"

        return str(await ctx.step("work", work))

    engine = await hosts.open("ape", FlowDefinition("long", body))
    async with engine.serve([QueueSpec(name="work", concurrency=1)]):
        run = await engine.start("long", queue="work")
        await retry_until(lambda: at_work)

        def take_away(tx: Any) -> None:
            held = tx.run(run.id)
            update = {"status": RunStatus.QUEUED, "owner": None, "fence": held.fence + 1}
            tx.save_run(held.model_copy(update=update))

        await hosts.store.write(take_away)
        with psycopg.connect(hosts.url) as connection:
            connection.execute(
                "UPDATE dbos.workflow_status SET status = 'SUCCESS' WHERE status = 'PENDING'"
            )
        taken = await retry_until(lambda: _with_fence(hosts, run.id, 3))
        assert taken is not None
        assert taken.owner == engine.worker_id
        may_end.set()
        assert (await engine.finish(run.id)).result == "done"
    assert most == 1


async def _with_fence(hosts: Hosts, run_id: str, fence: int) -> Run | None:
    run = await hosts.run(run_id)
    return run if run.fence == fence and run.status is RunStatus.RUNNING else None


async def test_unreceived_claim_made_by_dbos_goes_back_to_the_queue(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, lost = DbosDatabase.claim, asyncio.Event()

    def forgetful(self: DbosDatabase, *given: Any) -> list[DbosClaim]:
        claims = claim(self, *given)
        if claims and not lost.is_set():
            lost.set()
            raise StoreAway("the answer was lost")
        return claims

    monkeypatch.setattr(DbosDatabase, "claim", forgetful)
    engine = await hosts.open("ape")
    async with engine.serve([QueueSpec(name="work", concurrency=1)]):
        run = await engine.start("stay", queue="work")
        await engine.signal(run.id, "go")
        assert (await engine.finish(run.id)).result == ["ape", "ape", 1]
    assert lost.is_set()


async def test_a_place_that_could_not_be_given_back_is_given_back_later(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, lost = DbosDatabase.settle, asyncio.Event()

    def away(self: DbosDatabase, claim: DbosClaim) -> None:
        if not lost.is_set():
            lost.set()
            raise StoreAway("nobody is there")
        settle(self, claim)

    monkeypatch.setattr(DbosDatabase, "settle", away)
    engine = await hosts.open("ape", FlowDefinition("short", _nothing))
    async with engine.serve([QueueSpec(name="work", concurrency=1)]):
        first = await engine.start("short", queue="work")
        await engine.finish(first.id)
        second = await engine.start("short", queue="work")
        assert (await engine.finish(second.id)).status is RunStatus.SUCCEEDED
    assert lost.is_set()


async def _nothing(ctx: Any, input: Any) -> None:
    return None


async def test_a_schedule_that_cannot_be_fired_is_paused_and_the_dead_are_looked_after(
    hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    flow = FlowDefinition("typed", _nothing, input_type=int)
    engine = await hosts.open("ape", flow)
    due = SystemClock().now()
    odd = Schedule(
        name="odd", flow="typed", queue="work", input="no number", every_seconds=60, next_at=due
    )
    await hosts.store.write(lambda tx: tx.save_schedule(odd))
    async with engine.serve([WORK]):
        later = await engine.start("typed", 1, queue="work", delay_seconds=0.5)
        assert (await engine.finish(later.id)).status is RunStatus.SUCCEEDED
    [kept] = await hosts.store.read(lambda view: view.schedules())
    assert kept.paused
    assert "schedule 'odd' is paused" in caplog.text


@pytest.mark.soak
async def test_a_row_of_somebody_else_in_dbos_is_settled_and_stops_nothing(hosts: Hosts) -> None:
    engine = await hosts.open("ape", FlowDefinition("short", _nothing))
    with psycopg.connect(hosts.url) as connection:
        connection.execute(
            "SELECT dbos.enqueue_workflow(workflow_name => 'podium_run', queue_name => 'work', "
            "workflow_id => 'evil', app_version => 'short@1', application_name => 'podium')"
        )
    async with engine.serve([QueueSpec(name="work", concurrency=1)]):
        run = await engine.start("short", queue="work")
        assert (await engine.finish(run.id)).status is RunStatus.SUCCEEDED


async def test_a_process_that_could_not_say_that_it_lives_says_so_the_next_time(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter, refused = PostgresPresence.enter, asyncio.Event()

    async def away(self: PostgresPresence, worker_id: str) -> None:
        if not refused.is_set():
            refused.set()
            raise StoreAway("nobody is there")
        await enter(self, worker_id)

    monkeypatch.setattr(PostgresPresence, "enter", away)
    engine = await hosts.open("ape")
    with pytest.raises(StoreAway):
        await engine.start("stay")
    run = await engine.start("stay")
    await engine.signal(run.id, "go")
    assert (await engine.finish(run.id)).result == ["ape", "ape", 1]
    assert await engine.alive() == {engine.worker_id}
