"""Who is alive: a lock the kernel holds for as long as the process does, and a heartbeat.

The lock tells at once that a killed owner is dead. The heartbeat tells it of an owner that is
stopped or hung: its lock still stands, but its lease runs out.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from podium.domain.work import Run, RunStatus
from podium.ports import Clock, RunQuery, View


class WorkerLock:
    """This process's own mark of life, held until `release` or the process's end."""

    def __init__(self, folder: Path, worker_id: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / f"{worker_id}.lock"
        self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        with suppress(FileNotFoundError):
            self._path.unlink()
        os.close(self._file)


class Roster:
    """Which of the workers on this store still own what they claimed.

    `myself` is always one of them: after a laptop's sleep the lease has run out, but who is awake to
    look at it is alive, and if another process has taken a run meanwhile the fence says so.
    """

    def __init__(self, myself: str, folder: Path, clock: Clock, lease_seconds: float) -> None:
        self._myself = myself
        self._folder = folder
        self._clock = clock
        self._lease = timedelta(seconds=lease_seconds)

    def alive(self, view: View) -> set[str]:
        now = self._clock.now()
        return {self._myself} | {
            beat.id
            for beat in view.workers()
            if beat.beat_at + self._lease >= now and _locked(self._folder / f"{beat.id}.lock")
        }

    def is_gone(self, worker_id: str) -> bool:
        """Whether a worker's process has ended, and all that it started with it."""
        return worker_id != self._myself and not _locked(self._folder / f"{worker_id}.lock")

    def orphans(self, view: View) -> list[Run]:
        """Runs of queues whose owner is dead."""
        dead = view.owners() - self.alive(view)
        if not dead:
            return []
        held = view.runs(RunQuery(statuses=(RunStatus.RUNNING, RunStatus.WAITING), limit=100_000))
        return [run for run in held if run.queue is not None and run.owner in dead]

    def sweep(self) -> None:
        """Remove the lock files of the dead."""
        for path in self._folder.glob("*.lock"):
            if not _locked(path):
                with suppress(FileNotFoundError):
                    path.unlink()


def _locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
