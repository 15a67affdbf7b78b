"""Liveness of processes: a mark that lasts as long as the process does, and a heartbeat.

The mark tells at once that a killed owner is dead. The heartbeat tells it of an owner that is
stopped, hung or cut off: its mark still stands, but its lease runs out.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from podium.core.work import Run, RunStatus, WorkerHeartbeat
from podium.platform import make_private_folder
from podium.platform.file_lock import is_locked, take_file_lock
from podium.ports import Clock, Presence, RunQuery, Store, StoreView

HELD = (RunStatus.RUNNING, RunStatus.WAITING)


class FolderPresence:
    """Marks of processes on one machine: a file each, locked by the kernel."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: tuple[Path, int] | None = None

    async def enter(self, worker_id: str) -> None:
        make_private_folder(self._folder)
        path = self._folder / f"{worker_id}.lock"
        self._held = path, take_file_lock(path, seconds=math.inf)

    async def leave(self) -> None:
        if self._held is not None:
            path, file = self._held
            self._held = None
            with suppress(FileNotFoundError):
                path.unlink()
            os.close(file)

    def present(self, view: StoreView, workers: list[WorkerHeartbeat]) -> set[str]:
        return {worker.id for worker in workers if self._is_alive(worker.id)}

    def is_gone(self, view: StoreView, worker: WorkerHeartbeat | None) -> bool:
        return worker is None or not self._is_alive(worker.id)

    def sweep(self) -> None:
        for path in self._folder.glob("*.lock"):
            if not is_locked(path):
                with suppress(FileNotFoundError):
                    path.unlink()

    def _is_alive(self, worker_id: str) -> bool:
        return is_locked(self._folder / f"{worker_id}.lock")


class WorkerRoster:
    """The workers on this store that still own what they claimed.

    `myself` is always one of them: after a laptop's sleep the lease has run out, but who is awake to
    look at it is alive, and if another process has taken a run meanwhile the fence says so.
    """

    def __init__(
        self, myself: str, presence: Presence, lease_seconds: float, responsive_seconds: float = 0.0
    ) -> None:
        """A worker heard within `responsive_seconds` lives, with or without a lock: one that hangs on a
        connection is lost with it, and taken again."""
        self._myself = myself
        self._presence = presence
        self._lease = timedelta(seconds=lease_seconds)
        self._responsive = timedelta(seconds=responsive_seconds)

    def alive(self, view: StoreView) -> set[str]:
        return {heartbeat.id for heartbeat in self.alive_workers(view)} | {self._myself}

    def alive_workers(self, view: StoreView) -> list[WorkerHeartbeat]:
        """The beats of those alive; this process's own only once it has beaten."""
        now = view.now()
        recent = [
            heartbeat for heartbeat in view.workers() if heartbeat.beat_at + self._lease >= now
        ]
        silent = [heartbeat for heartbeat in recent if self._responsive <= now - heartbeat.beat_at]
        gone = {heartbeat.id for heartbeat in silent} - self._presence.present(view, silent)
        mine = [heartbeat for heartbeat in view.workers() if heartbeat.id == self._myself]
        return mine + [
            heartbeat for heartbeat in recent if heartbeat.id not in gone | {self._myself}
        ]

    def is_gone(self, view: StoreView, worker_id: str) -> bool:
        """Tell whether a worker's process has ended, and all that it started with it."""
        if worker_id == self._myself:
            return False
        heartbeat = next((worker for worker in view.workers() if worker.id == worker_id), None)
        return self._presence.is_gone(view, heartbeat)

    def orphans(self, view: StoreView) -> list[Run]:
        """Runs of queues whose owner is dead."""
        dead = view.owners() - self.alive(view)
        if not dead:
            return []
        held = view.runs(RunQuery(statuses=HELD, limit=100_000))
        return [run for run in held if run.queue is not None and run.owner in dead]


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
        heartbeat_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._store = store
        self._clock = clock
        self._presence = presence
        self._says = says
        self._heartbeat_seconds = heartbeat_seconds
        self._lease_seconds = lease_seconds
        now = clock.now()
        self._life = WorkerHeartbeat(
            id=worker_id, host=host, pid=os.getpid(), started_at=now, beat_at=now
        )
        self._last = clock.monotonic()
        self._uninterrupted_since = self._last
        self._beginning = asyncio.Lock()
        self.begun = False
        """True if others are told of this process."""

    async def begin(self) -> None:
        """Be there from now on, or, when that cannot be told, raise and not be there."""
        async with self._beginning:
            if self.begun:
                return
            await self._presence.enter(self._life.id)
            try:
                await self.send()
            except BaseException:
                await self._presence.leave()
                raise
            self.begun = True

    async def send(self) -> None:
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        heartbeat = self._life.model_copy(update={"load": load, **self._says()})
        await self._store.write(
            lambda tx: tx.save_worker(heartbeat.model_copy(update={"beat_at": tx.now()}))
        )
        now = self._clock.monotonic()
        if now - self._last >= self._lease_seconds:
            self._uninterrupted_since = now
        self._last = now

    @property
    def is_due(self) -> bool:
        return self._clock.monotonic() - self._last >= self._heartbeat_seconds

    def uninterrupted_for(self, seconds: float) -> bool:
        """Tell whether beats were kept for so long without a break that others could take for death."""
        return self._clock.monotonic() - self._uninterrupted_since >= seconds

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
