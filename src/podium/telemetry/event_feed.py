"""Feed of committed events to listeners that can neither fail nor slow a run, and of the runs one process hosts.

Who listens is behind the record and never in its way: events are read by cursor once they are durable.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from queue import SimpleQueue
from typing import Generic, NamedTuple, ParamSpec

from podium.core.events import Event, RunCancelled, RunFailed, RunParked, RunStarted, RunSucceeded
from podium.core.work import Run
from podium.ports import EventQuery, Store, StoreView

P = ParamSpec("P")

PAGE = 100
"""Events that wait for a listener; others stay in the journal until it has taken these."""

PATIENCE_SECONDS = 5.0
"""Longest wait of closing for a listener that takes nothing. One that takes on is waited for."""

PAUSE_SECONDS = 1.0
"""Pause after a store could not be read."""

MAX_COUNTED = 10_000
"""Events that are counted one by one when a listener is given up."""


class GuardedListener(Generic[P]):
    """Calls a listener. What it raises is counted, and the next event is handed to it all the same."""

    def __init__(self, name: str, take: Callable[P, None]) -> None:
        """`name` is how a person calls what listens."""
        self._name = name
        self._take = take
        self.failed = 0
        self.error: Exception | None = None
        """The last error it raised."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            self._take(*args, **kwargs)
        except Exception as error:
            self.failed += 1
            self.error = error

    @property
    def problems(self) -> tuple[str, ...]:
        """Events it did not take, and the reasons."""
        if self.error is None:
            return ()
        why = f"{type(self.error).__name__}: {self.error}"[:200]
        return (f"{self._name} failed for {_events(self.failed)}, most recently with {why}",)


async def keep_up(
    store: Store, catch_up: Callable[[], Awaitable[None]], failed: Callable[[Exception], None]
) -> None:
    """Catch up after every commit, until the store is closed. Trouble is waited out, never raised."""
    while True:
        try:
            async for _ in store.changes():
                await catch_up()
            return
        except Exception as error:
            # A reading must never bring down who hosts runs; it goes on where it stopped.
            failed(error)
        await asyncio.sleep(PAUSE_SECONDS)


class ListenerThread:
    """Hands events to one listener in order, in a thread of its own, until it is closed.

    A slow listener lags behind: what it has not come to stays in the journal, so that no more than two
    pages wait in memory and nothing is lost while it takes on. One that takes nothing any more when it
    is closed is given up, and what it was not told is counted.
    """

    def __init__(
        self,
        store: Store,
        query: EventQuery,
        take: Callable[[Event], None],
        *,
        name: str,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`query` says which events, and behind which the first one is. Needs a running event loop."""
        self._store = store
        self._query = query.model_copy(update={"limit": PAGE})
        self._take = GuardedListener(name, take)
        self._name = name
        self._patience_seconds = patience_seconds
        self._loop = asyncio.get_running_loop()
        self._pages: SimpleQueue[Sequence[Event]] = SimpleQueue()
        self._free = asyncio.Event()
        self._free.set()
        self._over = threading.Event()
        self._closed = False
        self._first = self._query
        self._last: Event | None = None
        self._taken = 0
        self._unread: Exception | None = None
        self.dropped = 0
        """Events that the listener was not told, once this is closed."""
        self._thread = threading.Thread(target=self._serve, name=f"podium {name}", daemon=True)
        self._thread.start()
        self._following = asyncio.create_task(keep_up(store, self._catch_up, self._not_read))

    @property
    def problems(self) -> tuple[str, ...]:
        """Events the listener missed, and the reasons. Complete once this is closed."""
        if not self.dropped:
            return self._take.problems
        why = "the journal could not be read" if self._unread else "it stopped accepting events"
        drop_notice = f"{self._name} missed {_events(self.dropped)}: {why}"
        return (*self._take.problems, drop_notice)

    @property
    def error(self) -> Exception | None:
        """The last error the listener raised."""
        return self._take.error

    async def close(self) -> None:
        """Hand over what is there now, then let go of the listener. Never raises for what it does."""
        if self._closed:
            return
        self._closed = True
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following
        rest = asyncio.create_task(self._hand_over_the_rest())
        try:
            await self._while_it_takes(rest)
        finally:
            rest.cancel()
            self._over.set()
            self._pages.put(())
        self.dropped = await self._count_untaken() if not self._free.is_set() or self._unread else 0

    async def _catch_up(self) -> None:
        while events := await self._store.read(lambda view: view.events(self._query)):
            await self._free.wait()
            self._free.clear()
            self._query = _behind(self._query, events[-1])
            self._pages.put(events)
        self._unread = None

    def _not_read(self, error: Exception) -> None:
        self._unread = error

    async def _hand_over_the_rest(self) -> None:
        try:
            await self._catch_up()
        except Exception as error:  # a store that is away; who closes is not to suffer for it
            self._not_read(error)
        await self._free.wait()

    async def _while_it_takes(self, work: asyncio.Task[None]) -> None:
        before = -1
        while not work.done() and self._taken != before:
            before = self._taken
            await asyncio.wait([work], timeout=self._patience_seconds)

    def _serve(self) -> None:
        """In the listener's own thread."""
        while not self._over.is_set():
            for event in self._pages.get():
                if self._over.is_set():
                    return
                self._take(event)
                self._last = event
                self._taken += 1
            with suppress(RuntimeError):  # the event loop ended before this was closed
                self._loop.call_soon_threadsafe(self._free.set)

    async def _count_untaken(self) -> int:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self._store.read(self._left)
        except Exception:
            # How many is not known; that there are some is.
            return 1

    def _left(self, view: StoreView) -> int:
        count, query = 0, _behind(self._first, self._last) if self._last else self._first
        while count < MAX_COUNTED and (events := view.events(query)):
            count, query = count + len(events), _behind(query, events[-1])
        return count


def _behind(query: EventQuery, event: Event) -> EventQuery:
    """The same events, behind this one."""
    cursor = {"after_seq": event.seq} if query.run_id else {"after_position": event.position}
    return query.model_copy(update=cursor)


def _events(count: int) -> str:
    more = " or more" if count >= MAX_COUNTED else ""
    return "1 event" if count == 1 else f"{count}{more} events"


HOSTED_PAGE = 500
MAX_RUNS = 10_000
"""A run that stopped for a person may never be heard of again; of more than these the oldest is forgotten."""

_LET_GO = (RunParked, RunSucceeded, RunFailed, RunCancelled)

OWNER_TYPES = ("run_cancelled", "run_failed", "run_parked", "run_started", "run_succeeded")
"""Events that tell who takes a run and who lets go of it."""


class HostedRun(NamedTuple):
    """Facts about a run as it was when this process took it."""

    id: str
    flow: str
    flow_version: int
    queue: str | None
    parent_id: str | None
    created_at: datetime
    ready_at: datetime
    """From when on it could have been taken."""
    fence: int


Taker = Callable[[Event, HostedRun], None]


class HostedFollower:
    """Hands every event of a run to `take` while this process owns the run, in order.

    Others count and trace what they own, so that the sum over all processes is right. It begins behind
    the last event there is when it is opened: open it before the first run is taken.
    """

    @classmethod
    async def open(
        cls,
        store: Store,
        worker_id: str,
        types: Sequence[str],
        take: Taker,
        *,
        name: str = "counting",
    ) -> HostedFollower:
        """`types` are those that `take` wants; who takes and lets go is read besides.

        `take` is called in the event loop: it must not wait for anything. `name` is how faults call it.
        """
        position = await store.read(lambda view: view.last_position())
        return cls(store, worker_id, types, GuardedListener(name, take), position)

    def __init__(
        self,
        store: Store,
        worker_id: str,
        types: Sequence[str],
        take: GuardedListener[[Event, HostedRun]],
        position: int,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._types = tuple(sorted({*types, *OWNER_TYPES}))
        self._take = take
        self._runs: dict[str, HostedRun] = {}
        self._turn = asyncio.Lock()
        self.position = position
        """Behind which nothing has been read yet."""
        self.problem = ""
        """The reason why it is behind; empty once it could read again."""

    async def follow(self) -> None:
        """Keep up until the store is closed. Trouble with the store is waited out, never raised."""
        await keep_up(self._store, self.catch_up, self._not_read)

    def _not_read(self, error: Exception) -> None:
        self.problem = f"{type(error).__name__}: {error}"

    @property
    def problems(self) -> tuple[str, ...]:
        """Events that were handed on in vain, and why."""
        return self._take.problems

    async def catch_up(self) -> None:
        """Read all there is now."""
        async with self._turn:
            while page := await self._store.read(self._page):
                for event, run in page:
                    self.position = event.position
                    self._note_owner(event, run)
                    self._hand_on(event)
            self.problem = ""

    def unread(self, view: StoreView) -> Event | None:
        """The first event that it has not come to."""
        query = EventQuery(types=self._types, after_position=self.position, limit=1)
        return next(iter(view.events(query)), None)

    def _page(self, view: StoreView) -> list[tuple[Event, Run | None]]:
        query = EventQuery(types=self._types, after_position=self.position, limit=HOSTED_PAGE)
        return [
            (event, view.run(event.run_id) if self._takes(event) else None)
            for event in view.events(query)
        ]

    def _takes(self, event: Event) -> bool:
        return isinstance(event.body, RunStarted) and event.body.owner == self._worker_id

    def _note_owner(self, event: Event, run: Run | None) -> None:
        if not isinstance(event.body, RunStarted):
            return
        self._runs.pop(event.run_id, None)
        if run is not None:
            self._runs[run.id] = _hosted(run, event.body.fence)
        while len(self._runs) > MAX_RUNS:
            del self._runs[next(iter(self._runs))]

    def _hand_on(self, event: Event) -> None:
        run = self._runs.get(event.run_id)
        if run is None:
            return
        if isinstance(event.body, _LET_GO):
            del self._runs[event.run_id]
        self._take(event, run)


def _hosted(run: Run, fence: int) -> HostedRun:
    return HostedRun(
        id=run.id,
        flow=run.flow,
        flow_version=run.flow_version,
        queue=run.queue,
        parent_id=run.parent_id,
        created_at=run.created_at,
        ready_at=max(run.created_at, run.not_before or run.created_at),
        fence=fence,
    )
