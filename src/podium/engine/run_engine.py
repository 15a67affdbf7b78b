"""`RunEngine`: hosts runs in this process and shares them with other processes through the store.

What differs between one machine and many is who hands out the runs of queues: see `dispatch`.
"""

from __future__ import annotations

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypeVar, cast

from pydantic import Field

from podium.core.errors import BadInput, Passing, PodiumError, StoreFull
from podium.core.model import FrozenModel, Json
from podium.core.work import QueueSpec, Run, RunStatus, Schedule, Signal
from podium.engine.deadlines import Deadlines, next_after
from podium.engine.dispatch import Dispatch
from podium.engine.liveness import HELD, Heartbeat, WorkerRoster
from podium.engine.ownership import Ownership, require_run
from podium.engine.run_hold import RunHold
from podium.engine.run_host import RunHost, StopReason
from podium.ports import Clock, Flow, Ids, Presence, RunQuery, Store, StoreView, Transaction

T = TypeVar("T")


class EngineSettings(FrozenModel):
    """Intervals of a process's heartbeats, and the time for which others believe them."""

    lease_seconds: float = Field(default=15.0, gt=0)
    """An owner that has not been heard of for so long has lost its runs."""
    heartbeat_seconds: float = Field(default=4.0, gt=0)
    tick_seconds: float = Field(default=1.0, gt=0)
    """Interval at which deadlines and the dead are looked at when nothing else happens."""
    gather_seconds: float = Field(default=0.02, ge=0)
    """Changes within so long are looked at together, unless a run here waits for one."""
    doubt_seconds: float = Field(default=0.0, ge=0)
    """Time for which this process must have been heard without a break before it calls others dead.

    After an outage of the database nobody has been heard for a while, and everybody lives.
    """
    responsive_seconds: float = Field(default=0.0, ge=0)
    """Time after its last heartbeat for which a process counts as alive although its lock is missing."""
    pin_seconds: float = Field(default=30.0, ge=0)
    """Time for which a host may be unheard of, as when its worker is restarted, before others get its runs."""
    labels: tuple[str, ...] = ()
    """Labels that this process offers to queues that ask for them."""
    podium: str = ""
    """The version others are told."""
    offers: tuple[str, ...] = ()
    """Means that this process has and others may lack; runs that it starts in the foreground need them, too."""


class RunEngine(ABC):
    """Hosts runs in this process and shares them with other processes through the store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        presence: Presence,
        settings: EngineSettings,
        host: str = "",
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._presence = presence
        self._settings = settings
        worker_id = ids.new("wrk")
        self._roster = WorkerRoster(
            worker_id, presence, settings.lease_seconds, settings.responsive_seconds
        )
        self._deadlines = Deadlines(clock)
        self._ownership = Ownership(
            worker_id, clock, ids, self._roster, self._deadlines, settings.offers
        )
        self._host_name = host or socket.gethostname()
        self._hosts: dict[str, RunHost] = {}
        self._unrecorded: dict[str, BaseException] = {}
        """Errors for which the end of a run that was hosted here could not be stored."""
        self._reported = ""
        """The last trouble that was told of: one that stays is not told of every second."""
        self._queues: dict[str, QueueSpec] = {}
        self._answered_queue = ""
        self._strays: set[tuple[str, int]] = set()
        """Run and fence of what seemed to be owned and not hosted at the last beat."""
        self._heartbeat = Heartbeat(
            worker_id,
            self._host_name,
            store,
            clock,
            presence,
            self._about_itself,
            heartbeat_seconds=settings.heartbeat_seconds,
            lease_seconds=settings.lease_seconds,
        )
        self._watching: list[asyncio.Task[None]] = []
        self._nudge = asyncio.Event()
        self._dispatch = self._make_dispatch()
        self._claiming = asyncio.Lock()
        """Held from the look for room until what was claimed is hosted."""

    @abstractmethod
    def _make_dispatch(self) -> Dispatch:
        """Make the dispatch that hands out the runs of queues."""

    # --- what doors call -------------------------------------------------------------------

    @property
    def worker_id(self) -> str:
        return self._ownership.worker_id

    def disk_full_error(self) -> StoreFull | None:
        return None if self._hosts else self._disk_full()

    def _disk_full(self) -> StoreFull | None:
        try:
            self._store.require_space()
        except StoreFull as full:
            return full
        return None

    def register(self, flow: Flow) -> None:
        self._ownership.register(flow)

    async def start(
        self,
        flow: str,
        input: Json = None,
        *,
        task: str = "",
        queue: str | None = None,
        priority: int = 0,
        dedup_key: str | None = None,
        delay_seconds: float = 0.0,
        settings: dict[str, Json] | None = None,
        run_id: str | None = None,
        along: Callable[[Transaction], None] | None = None,
    ) -> Run:
        run = self._ownership.new_run(
            flow,
            input,
            task=task,
            queue=queue,
            priority=priority,
            dedup_key=dedup_key,
            delay_seconds=delay_seconds,
            settings=settings,
            run_id=run_id,
        )
        keep = self._ownership.begin if queue is None else self._ownership.enqueue

        def work(tx: Transaction) -> Run:
            if along is not None:
                along(tx)
            return keep(tx, run)

        if queue is not None:
            return await self._store.write(work)
        await self._be_alive()
        begun = await self._store.write(work)
        if begun.id == run.id:
            self._host(begun)
        return begun

    async def finish(self, run_id: str, *, stop_when_waiting: bool = False) -> Run:
        if (host := self._hosts.get(run_id)) is not None:
            await host.rest(stop_when_waiting)
        tick = self._settings.tick_seconds
        async with aclosing(ticking(self._store.changes(), tick)) as changes:
            async for _ in changes:
                run, answered = await self._store.read(lambda view: _run_and_answers(view, run_id))
                if _at_rest(run, stop_when_waiting) and not answered:
                    await self._let_host_end(run)
                    return run
                if (error := self._unrecorded.pop(run_id, None)) is not None:
                    # It is stored as running here for ever, which it is not.
                    raise error
                if run_id not in self._hosts and not await self._is_served(run):
                    # Its owner may have ended it after the first look and gone before the second.
                    return await self._store.read(lambda view: require_run(view, run_id))
                await asyncio.sleep(self._settings.gather_seconds)
        raise AssertionError("changes end only when the store is closed")

    async def signal(self, run_id: str, name: str, payload: Json = None, *, by: str = "") -> None:
        signal = Signal(
            id=self._ids.new("sig"),
            run_id=run_id,
            name=name,
            payload=payload,
            sent_by=by,
            sent_at=self._clock.now(),
        )
        await self._store.write(lambda tx: self._ownership.leave_signal(tx, signal))

    async def cancel(self, run_id: str, *, by: str, why: str = "") -> Run:
        return await self._store.write(
            lambda tx: self._ownership.request_cancel(tx, run_id, by, why)
        )

    async def resume(self, run_id: str, *, note: str = "", by: str = "") -> Run:
        await self._be_alive()
        async with self._claiming:
            run = await self._store.write(
                lambda tx: self._ownership.take_over(tx, run_id, note, by)
            )
            self._host(run)
        return run

    async def retry(self, run_id: str, *, from_step: str | None = None, by: str = "") -> Run:
        await self._be_alive()
        async with self._claiming:
            run = await self._store.write(
                lambda tx: self._ownership.try_again(tx, run_id, from_step, by)
            )
            self._host(run)
        return run

    async def runs(self, query: RunQuery) -> list[Run]:
        return await self._store.read(lambda view: view.runs(query))

    async def alive(self) -> set[str]:
        """Ids of the workers that are alive, this process among them when it hosts anything."""
        heartbeats = await self._store.read(self._roster.alive_workers)
        return {heartbeat.id for heartbeat in heartbeats}

    async def hosted(self, run_ids: Sequence[str]) -> set[str]:
        def look(view: StoreView) -> set[str]:
            alive = self._roster.alive(view)
            runs = (view.run(run_id) for run_id in run_ids)
            return {run.id for run in runs if run is not None and run.owner in alive}

        return await self._store.read(look)

    async def schedule(self, schedule: Schedule) -> None:
        self._ownership.definition(schedule.flow)
        next_after(schedule, self._clock.now())
        await self._store.write(lambda tx: tx.save_schedule(schedule))

    async def unschedule(self, name: str) -> None:
        await self._store.write(lambda tx: tx.drop_schedule(name))

    @asynccontextmanager
    async def serve(
        self, queues: Sequence[QueueSpec], *, answered_queue: str = ""
    ) -> AsyncIterator[None]:
        """While open, host runs of these queues, take up answered ones and fire schedules."""
        self._refuse_without_labels(queues)
        await self._dispatch.open(queues)
        await self._be_alive()
        names = {queue.name for queue in queues}
        self._queues |= {queue.name: queue for queue in queues}
        self._answered_queue = answered_queue or self._answered_queue
        await self._heartbeat.send()
        # Before anybody looks whether there is work: an answered run is some.
        await self._surviving_errors(self._take_up_answered)
        self._nudge.set()
        try:
            yield
        finally:
            if self._answered_queue in names:
                self._answered_queue = ""
            for name in names:
                self._queues.pop(name, None)
            async with self._claiming:
                pass  # whoever is claiming would else take back at once what is given back
            hosts = [host for host in self._hosts.values() if host.hold.run.queue in names]
            await self._stop_hosts(hosts, StopReason.LET_GO)

    async def close(self) -> None:
        await self._stop_hosts(list(self._hosts.values()), StopReason.LET_GO)
        await self._end_watching()
        await self._dispatch.close()
        await self._heartbeat.end()

    async def abandon(self) -> None:
        """Do what `kill -9` would: stop without another word to the store."""
        self._dispatch.forget_claims()
        await self._stop_hosts(list(self._hosts.values()), StopReason.ABANDONED)
        await self._end_watching()
        await self._dispatch.close()
        await self._heartbeat.end(say_so=False)

    # --- hosting ---------------------------------------------------------------------------

    def _host(self, run: Run) -> None:
        hold = RunHold(
            run,
            self._store,
            self._clock,
            self._ownership.new_run,
            self._deadlines,
            self._host_name,
        )
        before = self._hosts.get(run.id)
        if before is not None:
            # Taken from this process and come back to it: two bodies must not share one workspace.
            before.stop(StopReason.ABANDONED)
        host = RunHost(
            hold,
            self._ownership.definition(run.flow),
            self._store,
            self._ids,
            after=None if before is None else before.task,
        )
        self._hosts[run.id] = host
        host.task.add_done_callback(lambda task: self._hosted_no_more(host))

    def _hosted_no_more(self, host: RunHost) -> None:
        if self._hosts.get(host.run_id) is host:
            del self._hosts[host.run_id]
        self._dispatch.hosted_no_more(host.hold.run)
        self._nudge.set()
        if not host.task.cancelled() and (error := host.task.exception()) is not None:
            self._unrecorded[host.run_id] = error
            _report(f"the end of run {host.run_id} was not recorded", error)

    async def _let_host_end(self, run: Run) -> None:
        host = self._hosts.get(run.id)
        if host is not None and run.status.ended:
            await asyncio.wait((host.task,))

    async def _stop_hosts(self, hosts: Sequence[RunHost], why: StopReason) -> None:
        for host in hosts:
            host.stop(why)
        if hosts:
            await asyncio.wait([host.task for host in hosts])

    async def _is_served(self, run: Run) -> bool:
        return await self._store.read(lambda view: self._ownership.served(view, run))

    # --- staying alive and hearing news ----------------------------------------------------

    async def _be_alive(self) -> None:
        """Begin to beat and to listen, once runs are hosted here."""
        await self._heartbeat.begin()
        if not self._watching:
            self._watching = [
                asyncio.create_task(self._hear(), name="podium engine: changes"),
                asyncio.create_task(self._tick(), name="podium engine: time"),
            ]

    async def _end_watching(self) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        self._watching = []

    def _about_itself(self) -> dict[str, Any]:
        """The facts that others may know of this worker."""
        queues = tuple(self._queues.values())
        return {
            "queues": tuple(queue.name for queue in queues),
            "labels": self._settings.labels,
            "flows": self._ownership.flow_names(),
            "hosting": len(self._hosts),
            "room": sum(queue.worker_concurrency for queue in queues),
            "podium": self._settings.podium,
            "answered_queue": self._answered_queue,
            "offers": self._settings.offers,
        }

    async def _hear(self) -> None:
        """Look at what changed in the store. The store wakes us; nothing is polled."""
        async for _ in self._store.changes():
            await self._surviving_errors(self._look)
            if not any(host.hold.waits for host in self._hosts.values()):
                await asyncio.sleep(self._settings.gather_seconds)

    async def _tick(self) -> None:
        """Look at the time: deadlines, schedules, heartbeat, the dead."""
        pause = self._settings.tick_seconds
        while True:
            self._nudge.clear()
            pause = await self._surviving_errors(self._mind_the_time) or pause
            # Not `wait_for`: before Python 3.12 it loses a cancellation that meets the nudge.
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._nudge.wait()

    async def _mind_the_time(self) -> float:
        """Do what is due; gives the seconds until something else is."""
        self._poke_due()
        await self._send_heartbeat_when_due()
        if self._queues:
            await self._tend_queues()
        return await self._pause()

    async def _send_heartbeat_when_due(self) -> None:
        """Before anything is claimed or anybody judged: who was away must know and be heard first."""
        if self._heartbeat.is_due:
            await self._heartbeat.send()
            await self._drop_what_was_taken()
            await self._host_what_was_forgotten()

    async def _surviving_errors(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Go on listening and beating whatever happens: a deaf engine would never wake its runs.

        What passes by itself is tried again with the next turn, anything else is reported too.
        """
        try:
            result = await work()
        except Passing:
            await asyncio.sleep(self._settings.gather_seconds)
        except Exception as error:
            if isinstance(error, StoreFull):
                self._let_go_of_all()
            if str(error) != self._reported:
                _report("the engine continues after an error", error)
            self._reported = str(error)
            await asyncio.sleep(self._settings.tick_seconds)
        else:
            self._reported = ""
            return result
        return None

    def _let_go_of_all(self) -> None:
        """End what is hosted: a tree of it may be what fills the disk, and none of it can be recorded."""
        for host in list(self._hosts.values()):
            host.stop(StopReason.LET_GO)

    async def _pause(self) -> float:
        """Seconds until something is due, at most a tick."""
        now = self._clock.now()
        left = [host.hold.seconds_left(now) for host in self._hosts.values()]
        if self._queues and (timestamp := await self._store.read(lambda view: view.next_due_at())):
            left.append(self._deadlines.seconds_left(timestamp, now))
        due = min((seconds for seconds in left if seconds is not None), default=60.0)
        return max(0.001, min(due, self._settings.tick_seconds))

    async def _look(self) -> None:
        if self._hosts:
            hosted = set(self._hosts)
            signals, wished = await self._store.read(
                lambda view: (view.untaken_signals(hosted), view.cancel_wished())
            )
            for host in list(self._hosts.values()):
                if host.run_id in wished:
                    host.stop(StopReason.CANCELLED)
                else:
                    host.hold.hear({name for run_id, name in signals if run_id == host.run_id})
        if self._queues:
            await self._send_heartbeat_when_due()
            await self._claim_what_fits()

    def _poke_due(self) -> None:
        now = self._clock.now()
        for host in self._hosts.values():
            left = host.hold.seconds_left(now)
            if left is not None and left <= 0:
                host.hold.look_at_the_time()

    async def _drop_what_was_taken(self) -> None:
        """Stop bodies whose run another process took while this one was stopped or hung."""
        ids = list(self._hosts)
        runs = await self._store.read(lambda view: [view.run(run_id) for run_id in ids])
        for run in runs:
            host = self._hosts.get(run.id) if run else None
            if run and host and host.hold.run.fence != run.fence:
                host.stop(StopReason.ABANDONED)

    async def _host_what_was_forgotten(self) -> None:
        """Host runs of queues that are this process's own and that it does not know of: the answer to
        its claim was lost with the connection. One that has just ended looks the same once, not twice."""
        query = RunQuery(statuses=HELD, owner=self.worker_id, limit=1000)
        async with self._claiming:
            owned = await self._store.read(lambda view: view.runs(query))
            strays = {
                (run.id, run.fence): run
                for run in owned
                if run.queue in self._queues and run.id not in self._hosts
            }
            for number in strays.keys() & self._strays:
                self._host(strays.pop(number))
            self._strays = set(strays)

    # --- serving queues --------------------------------------------------------------------

    async def _tend_queues(self) -> None:
        if self._heartbeat.uninterrupted_for(self._settings.doubt_seconds):
            await self._dispatch.tend()
            await self._take_up_answered()
        await self._claim_what_fits()

    async def _take_up_answered(self) -> None:
        """Queue runs of the foreground that were answered when whoever started them had left."""
        queue = self._answered_queue
        if not queue:
            return
        answered = await self._store.read(self._ownership.answered)
        if answered:
            await self._store.write(lambda tx: self._ownership.queue_answered(tx, queue))

    async def _claim_what_fits(self) -> None:
        async with self._claiming:
            for queue in list(self._queues.values()):
                # Not for as long as there is room: short runs would keep this going for minutes, while
                # nobody beats, listens or looks after the dead. Whoever ends makes for another turn.
                slots = self._free_slots(queue)
                while slots > 0:
                    runs = await self._dispatch.claim(queue, slots)
                    for run in runs:
                        self._host(run)
                    slots = min(slots - len(runs), self._free_slots(queue)) if runs else 0

    def _free_slots(self, queue: QueueSpec) -> int:
        """The number of further runs of it that would be hosted here, just now."""
        if queue.name not in self._queues or self._disk_full():
            return 0
        here = sum(host.hold.run.queue == queue.name for host in self._hosts.values())
        return queue.worker_concurrency - here

    def _refuse_without_labels(self, queues: Sequence[QueueSpec]) -> None:
        for queue in queues:
            if missing := set(queue.labels) - set(self._settings.labels):
                raise BadInput(
                    f"queue {queue.name!r} needs workers with the label {min(missing)!r}; "
                    f"start this one with `--label {','.join(queue.labels)}`, or leave the queue to other workers"
                )


async def ticking(changes: AsyncIterator[None], seconds: float) -> AsyncGenerator[None, None]:
    """Changes, and a turn at least every so often: the death of an owner changes nothing in the store."""
    next_change = asyncio.ensure_future(cast("asyncio.Future[None]", anext(changes)))
    try:
        while True:
            await asyncio.wait((next_change,), timeout=seconds)
            if next_change.done():
                next_change.result()
                next_change = asyncio.ensure_future(cast("asyncio.Future[None]", anext(changes)))
            yield
    finally:
        next_change.cancel()
        await asyncio.gather(next_change, return_exceptions=True)


def _run_and_answers(view: StoreView, run_id: str) -> tuple[Run, bool]:
    """The run, and whether what it waits for was sent, so that it is about to go on."""
    run = require_run(view, run_id)
    if run.status is not RunStatus.WAITING:
        return run, False
    return run, run.awaits(name for _, name in view.untaken_signals([run_id]))


def _at_rest(run: Run, stop_when_waiting: bool) -> bool:
    if run.status is RunStatus.WAITING:
        return stop_when_waiting and not run.only_sleeps
    return run.status.ended or run.status is RunStatus.NEEDS_HUMAN


def _report(what: str, error: BaseException) -> None:
    """To whoever runs this process. An error of ours says all there is to say without a traceback."""
    about = {} if isinstance(error, PodiumError) else {"exception": error}
    message = f"{what}: {error}" if isinstance(error, PodiumError) else what
    asyncio.get_running_loop().call_exception_handler({"message": message, **about})
