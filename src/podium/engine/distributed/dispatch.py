"""Dispatch by DBOS: it says who gets which run, within which limits, and after whose death."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TypeVar

from podium.domain.errors import Passing
from podium.domain.work import QueueSpec, Run
from podium.engine.distributed.adopting import Adoption
from podium.engine.distributed.database import Claim, DbosDatabase
from podium.engine.distributed.enqueueing import needed_code, run_of
from podium.engine.liveness import Roster
from podium.engine.ownership import Ownership
from podium.ports import Store, View

T = TypeVar("T")

FORGET_AFTER = timedelta(hours=1)
"""How long DBOS keeps what was settled. Longer than any queue's rate is counted over."""

RECONCILE_SECONDS = 5.0
"""How often it is looked whether every queued run is known to DBOS."""


class DbosDispatch:
    """Claims through DBOS, then takes the run in Podium's own record, where the fence decides."""

    def __init__(
        self,
        database: Callable[[], DbosDatabase],
        store: Store,
        ownership: Ownership,
        roster: Roster,
        *,
        host: str,
        sweep_seconds: float,
        nudge: Callable[[], None],
    ) -> None:
        """`database` is made when the first queue is served: importing DBOS takes a second."""
        self._make_database = database
        self._database: DbosDatabase | None = None
        self._store = store
        self._ownership = ownership
        self._roster = roster
        self._host = host
        self._sweep_seconds = sweep_seconds
        self._nudge = nudge
        self._adoption = Adoption(ownership, roster, host)
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="podium-dbos")
        self._claims: dict[str, Claim] = {}
        """Run → the claim under which it is hosted here."""
        self._unsure: list[Claim] = []
        """Claims of which it is not known whether the record has them."""
        self._settling: set[asyncio.Task[None]] = set()
        self._silent = False
        self._swept = self._reconciled = 0.0

    async def open(self, queues: Sequence[QueueSpec]) -> None:
        if self._database is None:
            self._database = await self._in_thread(self._make_database)
        for queue in queues:
            await self._in_thread(self._database.register, queue)

    async def claim(self, queue: QueueSpec, places: int) -> list[Run]:
        database = self._opened
        mine = self._codes()
        for code in await self._in_thread(database.asked_for, queue.name):
            if code not in mine:
                continue
            claims = await self._in_thread(
                database.claim, queue.name, self._ownership.worker_id, code, places
            )
            if claims and (runs := await self._adopt(claims)):
                return runs
        return []

    def hosted_no_more(self, run: Run) -> None:
        claim = self._claims.pop(run.id, None)
        if claim is not None:
            self._later(self._settle(claim))

    async def tend(self) -> None:
        if await self._store.read(partial(self._ownership.has_chores, orphans=False)):
            await self._store.write(partial(self._ownership.do_chores, orphans=False))
        now = time.monotonic()
        if now - self._swept >= self._sweep_seconds:
            self._swept = now
            await self._sweep()

    def forget_claims(self) -> None:
        self._claims.clear()
        self._silent = True
        for task in self._settling:
            task.cancel()

    async def close(self) -> None:
        await asyncio.gather(*self._settling, return_exceptions=True)
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

    async def _in_thread(self, call: Callable[..., T], *given: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *given))

    def _codes(self) -> set[str]:
        """What can be hosted here: any run of these flows, and those that only this host can go on with."""
        offered = self._ownership.flow_versions()
        return {
            needed_code(flow, version, host)
            for flow, version in offered
            for host in (None, self._host)
        }

    async def _adopt(self, claims: Sequence[Claim]) -> list[Run]:
        """Take the claimed runs in the record. What is not to be had any more is settled at once."""
        workflows = [claim.workflow_id for claim in claims]
        try:
            taken = await self._store.write(
                lambda tx: self._adoption.adopt(tx, workflows, claims[0].token)
            )
        except BaseException:
            # It may be kept all the same: that is found out when the store answers again.
            self._unsure += claims
            raise
        runs = []
        for claim, run in zip(claims, taken, strict=True):
            if run is None:
                await self._settle(claim)
            else:
                self._claims[run.id] = claim
                runs.append(run)
        return runs

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _make_sure(self) -> None:
        """Go on with claims that are kept in the record, and queue the others again."""
        while self._unsure:
            claim = self._unsure[-1]
            if await self._store.read(partial(_call, self._adoption.adopted, claim.workflow_id)):
                self._claims[run_of(claim.workflow_id)[0]] = claim
            else:
                executor = self._ownership.worker_id
                await self._in_thread(self._opened.give_back, claim, executor)
            self._unsure.remove(claim)

    async def _settle(self, claim: Claim) -> None:
        """Give the place back, and see whether another run may have it."""
        await self._persistently(partial(self._opened.settle, claim))
        self._nudge()

    async def _persistently(self, call: Callable[[], None]) -> None:
        """Through an outage of a minute. After a longer one the next worker's sweep finds the row."""
        for pause in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0):
            try:
                await self._in_thread(call)
                return
            except Passing:
                await asyncio.sleep(pause)

    # --- what nobody else would notice -------------------------------------------------------

    async def _sweep(self) -> None:
        await self._in_thread(self._opened.wake_delayed)
        await self._make_sure()
        if dead := await self._store.read(self._adoption.dead):
            await self._store.write(lambda tx: self._adoption.release(tx, dead))
        now = time.monotonic()
        if now - self._reconciled >= RECONCILE_SECONDS * min(1.0, self._sweep_seconds):
            self._reconciled = now
            await self._reconcile()

    async def _reconcile(self) -> None:
        """Put right what no event will: runs that DBOS does not know, runs whose host or code is gone, rows of the dead and of the settled."""
        if await self._store.read(self._adoption.has_lost):
            await self._store.write(self._adoption.release_lost)
        suspects = await self._store.read(self._adoption.suspects)
        holders = await self._in_thread(self._opened.holders, list(suspects))
        if stuck := [run_id for workflow, run_id in suspects.items() if workflow not in holders]:
            await self._store.write(lambda tx: self._adoption.queue_again(tx, stuck))
        if await self._store.read(self._adoption.forgettable):
            await self._store.write(self._adoption.forget_the_dead)
        before = await self._store.read(lambda view: view.now()) - FORGET_AFTER
        await self._in_thread(self._opened.forget_settled, before.isoformat())


def _call(question: Callable[[View, str], bool], workflow: str, view: View) -> bool:
    return question(view, workflow)
