"""`DbosEngine`: durable runs on many machines that share one PostgreSQL, dispatched by DBOS; recovery of lost runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from podium.core.errors import Passing
from podium.core.events import RunNeededHuman, RunUnpinned
from podium.core.work import Failure, QueueSpec, Run, RunStatus, WorkerHeartbeat
from podium.engine.dispatch import Dispatch, report_problems
from podium.engine.distributed.database import DbosClaim, DbosDatabase
from podium.engine.distributed.workflows import (
    Adoption,
    asked,
    asked_for,
    codes_asked_for,
    needed_code,
    queue_anew,
    runs_needing,
    unknown_to_dbos,
)
from podium.engine.liveness import WorkerRoster
from podium.engine.ownership import Ownership
from podium.engine.run_engine import EngineSettings, RunEngine
from podium.ports import Clock, Ids, Presence, Store, StoreView, Transaction

MAX_COUNT = 1000
"""Runs that are put right in one go; what is left comes with the next."""


class LossDetector:
    """One worker's look for them, every few seconds."""

    def __init__(self, roster: WorkerRoster, host: str, pin_seconds: float) -> None:
        self._roster = roster
        self._host = host
        self._patience = timedelta(seconds=pin_seconds)
        self._missed: dict[str, datetime] = {}
        """Host → since when no worker of it was heard of."""

    def any(self, view: StoreView) -> bool:
        return bool(
            self._lost_hosts(view) or self._lost_codes(view) or self._forgettable(view)
        ) or bool(unknown_to_dbos(asked(view), 1))

    def put_right(self, tx: Transaction) -> None:
        for queue, code in self._lost_hosts(tx):
            for run in _waiting(tx, queue, code):
                reason = f"no worker is running on host {run.pinned_to!r}"
                tx.append(run.id, RunUnpinned(host=run.pinned_to or "", reason=reason))
                queue_anew(tx, run.model_copy(update={"pinned_to": None}))
        for queue, code in self._lost_codes(tx):
            for run in _waiting(tx, queue, code):
                _ask_a_person(tx, run)
        for run_id in unknown_to_dbos(asked(tx), MAX_COUNT):
            unknown = tx.run(run_id)
            if unknown is not None:
                queue_anew(tx, unknown)
        for worker_id in self._forgettable(tx):
            tx.drop_worker(worker_id)

    def _lost_hosts(self, view: StoreView) -> list[tuple[str, str]]:
        """Queue and code of runs pinned to hosts that have been silent for too long."""
        now = view.now()
        alive_hosts = {heartbeat.host for heartbeat in self._roster.alive_workers(view)} | {
            self._host
        }
        queued = [
            (queue, code, code.partition("#")[2]) for queue, code in codes_asked_for(asked(view))
        ]
        missing = {host for _, _, host in queued if host and host not in alive_hosts}
        self._missed = {host: self._missed.get(host, now) for host in missing}
        lost = {host for host, since in self._missed.items() if now - since >= self._patience}
        return [(queue, code) for queue, code, host in queued if host in lost]

    def _lost_codes(self, view: StoreView) -> list[tuple[str, str]]:
        """Queue and code of runs of a flow that workers of their queue have, but in no version that fits."""
        alive = self._roster.alive_workers(view)
        return [
            (queue, code)
            for queue, code in codes_asked_for(asked(view))
            if _only_other_versions(queue, code.partition("#")[0], alive)
        ]

    def _forgettable(self, view: StoreView) -> list[str]:
        """Workers that are dead and own nothing any more."""
        alive, owners = self._roster.alive(view), view.owners()
        return [
            heartbeat.id
            for heartbeat in view.workers()
            if heartbeat.id not in alive | owners and self._roster.is_gone(view, heartbeat.id)
        ]


def _waiting(view: StoreView, queue: str, code: str) -> Iterator[Run]:
    for run_id in runs_needing(asked(view), queue, code, MAX_COUNT):
        run = view.run(run_id)
        if run is not None and run.status is RunStatus.QUEUED:
            yield run


def _only_other_versions(queue: str, flow: str, alive: Sequence[WorkerHeartbeat]) -> bool:
    offered = {flow for heartbeat in alive if queue in heartbeat.queues for flow in heartbeat.flows}
    name = flow.rpartition("@")[0]
    return flow not in offered and any(offer.startswith(f"{name}@") for offer in offered)


def _ask_a_person(tx: Transaction, run: Run) -> None:
    reason = (
        f"run {run.id} was started by version {run.flow_version} of flow {run.flow!r}, which no worker "
        f"of queue {run.queue!r} has any more; start a worker of the Podium that started the run, "
        "then `podium resume` it, or cancel it and start a new run"
    )
    failure = Failure(kind="FlowChanged", message=reason, exit_code=3)
    update = {"status": RunStatus.NEEDS_HUMAN, "owner": None, "failure": failure}
    tx.save_run(run.model_copy(update=update))
    tx.append(run.id, RunNeededHuman(reason=reason))


T = TypeVar("T")

FORGET_AFTER = timedelta(hours=1)
"""Time for which DBOS keeps what was settled. Longer than any queue's rate is counted over."""

RECONCILE_SECONDS = 5.0
"""Interval at which state is reconciled of which no event tells."""


class DbosDispatch:
    """Claims through DBOS, then takes the run in Podium's own record, where the fence decides."""

    def __init__(
        self,
        database: Callable[[], DbosDatabase],
        store: Store,
        ownership: Ownership,
        roster: WorkerRoster,
        *,
        host: str,
        pin_seconds: float,
        sweep_seconds: float,
        nudge: Callable[[], None],
    ) -> None:
        """`database` is made when the first queue is served: importing DBOS takes a second."""
        self._make_database = database
        self._database: DbosDatabase | None = None
        self._store = store
        self._ownership = ownership
        self._host = host
        self._sweep_seconds = sweep_seconds
        self._nudge = nudge
        self._adoption = Adoption(ownership, roster)
        self._losses = LossDetector(roster, host, pin_seconds)
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="podium-dbos")
        self._claims: dict[tuple[str, int], DbosClaim] = {}
        """Run and fence → the claim under which it is hosted here."""
        self._finishing: dict[asyncio.Task[None], str] = {}
        """Tasks that give a place back, each with its workflow."""
        self._claiming = asyncio.Lock()
        """Held from a claim until it is known what became of it."""
        self._silent = False
        self._swept = self._reconciled = 0.0

    async def open(self, queues: Sequence[QueueSpec]) -> None:
        if self._database is None:
            self._database = await self._in_thread(self._make_database)
        for queue in queues:
            await self._in_thread(self._database.register, queue)

    async def claim(self, queue: QueueSpec, slots: int) -> list[Run]:
        mine = self._codes()
        async with self._claiming:
            # Through the record's own connection: most looks end here, with nothing to claim.
            for code in await self._store.read(lambda view: asked_for(asked(view), queue.name)):
                if code in mine and (runs := await self._claim(queue.name, code, slots)):
                    return runs
        return []

    def hosted_no_more(self, run: Run) -> None:
        claim = self._claims.pop((run.id, run.fence), None)
        if claim is not None:
            task = asyncio.ensure_future(self._settle(claim))
            self._finishing[task] = claim.workflow_id
            task.add_done_callback(self._finishing.pop)

    async def tend(self) -> None:
        try:
            if await self._store.read(partial(self._ownership.has_chores, orphans=False)):
                chores = partial(self._ownership.do_chores, orphans=False)
                report_problems(await self._store.write(chores))
        finally:
            # Whatever is wrong with a schedule, the dead are looked after.
            now = time.monotonic()
            if now - self._swept >= self._sweep_seconds:
                self._swept = now
                await self._sweep()

    def forget_claims(self) -> None:
        self._claims.clear()
        self._silent = True
        for task in self._finishing:
            task.cancel()

    async def close(self) -> None:
        await asyncio.gather(*self._finishing, return_exceptions=True)
        if self._database is None:
            return
        if not self._silent:
            # A claim that was under way when listening ended would be this worker's for ever.
            with suppress(Passing):
                await self._in_thread(self._database.recover, self._ownership.worker_id)
        # Whoever was cancelled has left its call running, on a connection that must come back first.
        await asyncio.to_thread(self._threads.shutdown, wait=True)
        await asyncio.to_thread(self._database.close)
        self._database = None

    @property
    def _opened(self) -> DbosDatabase:
        if self._database is None:
            raise AssertionError("queues are served only after `open`")
        return self._database

    async def _in_thread(self, call: Callable[..., T], *args: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *args))

    def _codes(self) -> set[str]:
        """Code that can be hosted here: any run of these flows, and those that only this host can go on with."""
        offered = self._ownership.flow_versions()
        return {
            needed_code(flow, version, host)
            for flow, version in offered
            for host in (None, self._host)
        }

    async def _claim(self, queue: str, code: str, slots: int) -> list[Run]:
        """Claim, and take the runs in the record. What is not to be had any more is settled at once."""
        worker_id = self._ownership.worker_id
        claims = await self._in_thread(self._opened.claim, queue, worker_id, code, slots)
        if not claims:
            return []
        workflows = [claim.workflow_id for claim in claims]
        taken = await self._store.write(
            lambda tx: self._adoption.adopt(tx, workflows, claims[0].token)
        )
        for claim, run in zip(claims, taken, strict=True):
            if run is None:
                await self._settle(claim)
            else:
                self._claims[run.id, run.fence] = claim
        return [run for run in taken if run is not None]

    async def _settle(self, claim: DbosClaim) -> None:
        """Give the place back, and see whether another run may have it. Not now: `_account` does it later."""
        with suppress(Passing):
            await self._in_thread(self._opened.settle, claim)
        self._nudge()

    # --- what nobody else would notice -------------------------------------------------------

    async def _sweep(self) -> None:
        await self._in_thread(self._opened.wake_delayed)
        if dead := await self._store.read(self._adoption.dead):
            await self._store.write(lambda tx: self._adoption.release(tx, dead))
        now = time.monotonic()
        if now - self._reconciled >= RECONCILE_SECONDS * min(1.0, self._sweep_seconds):
            self._reconciled = now
            await self._account()
            if await self._store.read(self._losses.any):
                await self._store.write(self._losses.put_right)
            before = await self._store.read(lambda view: view.now()) - FORGET_AFTER
            await self._in_thread(self._opened.forget_settled, before.isoformat())

    async def _account(self) -> None:
        """Find out what became of claims whose answer was lost, with a connection or in an outage."""
        async with self._claiming:
            claimed = {claim.workflow_id for claim in self._claims.values()}
            claimed |= set(self._finishing.values())
            held = await self._store.read(lambda view: self._adoption.unaccounted(view, claimed))
            # The engine hosts what is its own in the record; here its place is kept for it.
            self._claims |= {number: DbosClaim(*claim) for number, claim in held.mine.items()}
            for workflow in held.queued:
                executor = self._ownership.worker_id
                await self._in_thread(self._opened.give_back, workflow, executor)
            for workflow, token in held.over:
                await self._settle(DbosClaim(workflow, token))


DISTRIBUTED = EngineSettings(
    lease_seconds=6.0,
    heartbeat_seconds=2.0,
    doubt_seconds=6.0,
    responsive_seconds=3.0,
    gather_seconds=0.01,
)
"""A worker that is cut off has lost its runs after six seconds; one that is killed, after three."""


class DbosEngine(RunEngine):
    """Lets DBOS hand out the runs of queues. The store must hand queued runs to `enqueue`."""

    def __init__(
        self,
        store: Store,
        *,
        url: str,
        clock: Clock,
        ids: Ids,
        presence: Presence,
        settings: EngineSettings = DISTRIBUTED,
        host: str = "",
    ) -> None:
        """`url` is the database of the store. `host` names this machine where its own name does not."""
        self._url = url
        super().__init__(
            store, clock=clock, ids=ids, presence=presence, settings=settings, host=host
        )

    def _make_dispatch(self) -> Dispatch:
        return DbosDispatch(
            lambda: DbosDatabase(self._url),
            self._store,
            self._ownership,
            self._roster,
            host=self._host_name,
            pin_seconds=self._settings.pin_seconds,
            sweep_seconds=self._settings.tick_seconds,
            nudge=self._nudge.set,
        )
