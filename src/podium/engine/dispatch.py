"""Dispatch: who hands out the runs of queues, and takes back those of the dead."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from podium.core.work import QueueSpec, Run, RunStatus
from podium.engine.ownership import Ownership
from podium.ports import Presence, RunQuery, Store, StoreView, Transaction


class Dispatch(Protocol):
    """Used by one engine. Limits of queues hold over all engines on the store."""

    async def open(self, queues: Sequence[QueueSpec]) -> None:
        """Get ready to hand out runs of these queues."""
        ...

    async def claim(self, queue: QueueSpec, slots: int) -> list[Run]:
        """Take up to so many runs, in their order and within the queue's limits. Empty: none just now."""
        ...

    def hosted_no_more(self, run: Run) -> None:
        """A run that was claimed here has ended, waits unloaded or was let go of."""
        ...

    async def tend(self) -> None:
        """Queue again what is due and what the dead left behind; fire schedules."""
        ...

    def forget_claims(self) -> None:
        """Tell nobody any more what becomes of the runs that were claimed here, as if killed."""
        ...

    async def close(self) -> None: ...


class StoreDispatch:
    """Hands out runs by the store's own transactions: enough for the processes of one machine."""

    def __init__(self, store: Store, ownership: Ownership, presence: Presence) -> None:
        self._store = store
        self._ownership = ownership
        self._presence = presence

    async def open(self, queues: Sequence[QueueSpec]) -> None:
        return

    async def claim(self, queue: QueueSpec, slots: int) -> list[Run]:
        if not await self._store.read(partial(_anything_queued, queue)):
            return []
        run = await self._store.write(partial(_claim, self._ownership, queue))
        while run is not None and run.owner != self._ownership.worker_id:
            # It went to a person instead; the next one may be ours.
            run = await self._store.write(partial(_claim, self._ownership, queue))
        return [] if run is None else [run]

    def hosted_no_more(self, run: Run) -> None:
        return

    async def tend(self) -> None:
        if await self._store.read(self._ownership.has_chores):
            report_problems(await self._store.write(self._ownership.do_chores))
            await asyncio.to_thread(self._presence.sweep)

    def forget_claims(self) -> None:
        return

    async def close(self) -> None:
        return


def report_problems(problems: Sequence[str]) -> None:
    """To whoever runs this process."""
    for problem in problems:
        asyncio.get_running_loop().call_exception_handler({"message": problem})


def _anything_queued(queue: QueueSpec, view: StoreView) -> bool:
    return bool(view.runs(RunQuery(statuses=(RunStatus.QUEUED,), queue=queue.name, limit=1)))


def _claim(ownership: Ownership, queue: QueueSpec, tx: Transaction) -> Run | None:
    return ownership.claim(tx, queue)
