"""Saying that this process lives: a mark, and a beat every few seconds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from podium.domain.work import WorkerBeat
from podium.ports import Clock, Presence, Store


class Heartbeat:
    """One worker's own. What it says of itself beside its name is asked for at each beat."""

    def __init__(
        self,
        worker_id: str,
        host: str,
        store: Store,
        clock: Clock,
        presence: Presence,
        says: Callable[[], dict[str, Any]],
        *,
        beat_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._store = store
        self._clock = clock
        self._presence = presence
        self._says = says
        self._beat_seconds = beat_seconds
        self._lease_seconds = lease_seconds
        now = clock.now()
        self._life = WorkerBeat(
            id=worker_id, host=host, pid=os.getpid(), started_at=now, beat_at=now
        )
        self._last = clock.monotonic()
        self._heard_since = self._last
        self._beginning = asyncio.Lock()
        self.begun = False
        """Whether others are told of this process."""

    async def begin(self) -> None:
        """Be there from now on, or, when that cannot be told, raise and not be there."""
        async with self._beginning:
            if self.begun:
                return
            await self._presence.enter(self._life.id)
            try:
                await self.beat()
            except BaseException:
                await self._presence.leave()
                raise
            self.begun = True

    async def beat(self) -> None:
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        beat = self._life.model_copy(update={"load": load, **self._says()})
        await self._store.write(
            lambda tx: tx.save_worker(beat.model_copy(update={"beat_at": tx.now()}))
        )
        now = self._clock.monotonic()
        if now - self._last >= self._lease_seconds:
            self._heard_since = now
        self._last = now

    @property
    def is_due(self) -> bool:
        return self._clock.monotonic() - self._last >= self._beat_seconds

    def heard_for(self, seconds: float) -> bool:
        """Whether beats were kept for so long without a break that others could take for death."""
        return self._clock.monotonic() - self._heard_since >= seconds

    async def end(self, *, say_so: bool = True) -> None:
        """Stop being there, with or without a word to the others."""
        if not self.begun:
            return
        self.begun = False
        try:
            if say_so:
                await self._store.write(lambda tx: tx.drop_worker(self._life.id))
        finally:
            await self._presence.leave()
