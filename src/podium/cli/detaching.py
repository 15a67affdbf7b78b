"""Handing a run to a worker in the background, which is started when none takes it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from podium.cli.door import Door
from podium.cli.pipeline_telling import launch_record
from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.ids import short_id
from podium.domain.model import Noun
from podium.domain.work import Run, RunStatus
from podium.ports import Store
from podium.wiring import Podium

QUEUE = "default"
LOG = "worker.log"
_A_WORKERS_SECONDS = 2.0
"""A worker that is there takes a run within milliseconds; a busy machine may be slower."""
_A_NEW_WORKERS_SECONDS = 20.0
_TAIL_BYTES = 2_000


class BeginQueued(Protocol):
    """Stores the run in a queue."""

    def __call__(self, podium: Podium, queue: str | None) -> Awaitable[Run]: ...


class HandedOver(Noun):
    """A run that goes on without us."""

    run: Run
    worker_pid: int | None = None
    """The worker that was started for it. None: one was there."""
    log: str = ""


def hand_over(door: Door, begin: BeginQueued) -> None:
    """Queue the run, see that somebody works on it, and say how to follow it."""
    queues = door.configuration.settings.queues
    if queues and QUEUE not in queues:
        raise BadInput(
            f"podium.yaml has no queue {QUEUE!r} for runs that are detached; add `{QUEUE}: {{}}` to its queues"
        )

    async def work(podium: Podium) -> HandedOver:
        run = await begin(podium, QUEUE)
        door.options.parting_words = f"run {run.id} is queued: `podium worker --once` works on it, `podium cancel {run.id}` ends it"
        return await _handed_over(podium, run)

    done = door.run(work)
    run = done.run
    more = {"detached": True, "queue": QUEUE, "worker_pid": done.worker_pid, "log": done.log}

    def words() -> None:
        name = short_id(run.id)
        by = (
            f"worker {done.worker_pid} was started for it, its log is {done.log}"
            if done.worker_pid
            else "a worker took it"
        )
        door.screen.line(f"run {run.id} goes on in the background: {by}")
        door.screen.line(f"`podium logs {name} -f` follows it, `podium cancel {name}` ends it")

    door.screen.answer(launch_record(run, **more), words)


async def _handed_over(podium: Podium, run: Run) -> HandedOver:
    """Wait until a worker has it; one is started when none does."""
    store = await podium.store()
    others = await store.read(lambda view: view.workers())
    if others and await _taken(store, run.id, _A_WORKERS_SECONDS):
        return HandedOver(run=run)
    log = podium.folders.state / LOG
    worker = _started_worker(podium.folders.project, log)
    if not await _taken(store, run.id, _A_NEW_WORKERS_SECONDS, worker):
        code = worker.poll()
        how = "has not taken it yet" if code is None else f"left with {code}: {_tail(log)}"
        raise NotPossibleNow(
            f"run {run.id} is queued, but the worker that was started for it {how}; mend that, then "
            f"`podium worker --once` works on it"
        )
    return HandedOver(run=run, worker_pid=worker.pid, log=str(log))


def _started_worker(project: Path, log: Path) -> subprocess.Popen[bytes]:
    """In a session of its own, so that it outlives this terminal, and not through the launcher, whose
    processes end with us."""
    program = (sys.executable, "-m", "podium")
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        return subprocess.Popen(
            [*program, "worker", "--queue", QUEUE, "--once", "--project", str(project)],
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    finally:
        os.close(file)


async def _taken(
    store: Store, run_id: str, seconds: float, worker: subprocess.Popen[bytes] | None = None
) -> bool:
    """Whether somebody claims it within that time, or before the worker that was started is gone."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        run = await store.read(lambda view: view.run(run_id))
        if run is None or run.status is not RunStatus.QUEUED:
            return True
        if worker is not None and worker.poll() is not None:
            return False
        await _a_change(store)
    return False


async def _a_change(store: Store) -> None:
    changes = store.changes()
    try:
        async with asyncio.timeout(0.2), aclosing(changes):  # type: ignore[type-var]  # it is a generator
            await anext(changes)
            await anext(changes)
    except TimeoutError:
        return


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it wrote nothing"
