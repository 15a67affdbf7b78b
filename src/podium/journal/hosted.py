"""Follows the events of the runs that one process hosts, for readings that must cost it nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from podium.domain.events import Event, RunCancelled, RunFailed, RunParked, RunStarted, RunSucceeded
from podium.domain.work import Run
from podium.journal.listening import Harmless, keep_up
from podium.ports import EventQuery, Store, View

PAGE = 500
MOST_RUNS = 10_000
"""A run that stopped for a person may never be heard of again; of more than these the oldest is forgotten."""

_LET_GO = (RunParked, RunSucceeded, RunFailed, RunCancelled)

OWNER_TYPES = ("run_cancelled", "run_failed", "run_parked", "run_started", "run_succeeded")
"""Events that tell who takes a run and who lets go of it."""


class HostedRun(NamedTuple):
    """What readings need to know of a run, as it was when this process took it."""

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
        return cls(store, worker_id, types, Harmless(name, take), position)

    def __init__(
        self,
        store: Store,
        worker_id: str,
        types: Sequence[str],
        take: Harmless[[Event, HostedRun]],
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
        self.fault = ""
        """Why it is behind; empty once it could read again."""

    async def follow(self) -> None:
        """Keep up until the store is closed. Trouble with the store is waited out, never raised."""
        await keep_up(self._store, self.catch_up, self._not_read)

    def _not_read(self, error: Exception) -> None:
        self.fault = f"{type(error).__name__}: {error}"

    @property
    def faults(self) -> tuple[str, ...]:
        """Events that were handed on in vain, and why."""
        return self._take.faults

    async def catch_up(self) -> None:
        """Read all there is now."""
        async with self._turn:
            while page := await self._store.read(self._page):
                for event, run in page:
                    self.position = event.position
                    self._note_owner(event, run)
                    self._hand_on(event)
            self.fault = ""

    def unread(self, view: View) -> Event | None:
        """The first event that it has not come to."""
        query = EventQuery(types=self._types, after_position=self.position, limit=1)
        return next(iter(view.events(query)), None)

    def _page(self, view: View) -> list[tuple[Event, Run | None]]:
        query = EventQuery(types=self._types, after_position=self.position, limit=PAGE)
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
        while len(self._runs) > MOST_RUNS:
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
