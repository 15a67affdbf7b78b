"""Hand-off of a run to the workers of a queue; starts one in the background when none serves it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from podium.app.app import Podium
from podium.app.work_request import QueueSlot, queue_named
from podium.cli.context import CliContext
from podium.cli.progress import launch_record
from podium.core.errors import NotPossibleNow
from podium.core.ids import short_id
from podium.core.model import FrozenModel
from podium.core.work import QueueSpec, Run, RunStatus
from podium.platform.safe_open import open_plain
from podium.ports import Engine, Store
from podium.render.text import counted, local_time

LOG = "worker.log"
_CLAIM_SECONDS = 2.0
"""A worker that has room takes a run within milliseconds; a busy machine may be slower."""
_START_SECONDS = 20.0
_TAIL_BYTES = 2_000


class BeginQueued(Protocol):
    """Stores the run in a queue."""

    def __call__(self, podium: Podium, slot: QueueSlot | None, /) -> Awaitable[Run]: ...


class Handover(FrozenModel):
    """A run handed over to workers."""

    run: Run
    taken: bool
    """True when a worker already has it."""
    workers: int = 0
    """Workers that serve its queue and know its flow."""
    others: int = 0
    """Other runs that could start now and wait in its queue."""
    worker_pid: int | None = None
    """The worker that was started for it. None: none was needed, or none here would do."""
    log: str = ""


def hand_over(cli: CliContext, begin: BeginQueued, slot: QueueSlot) -> None:
    """Queue the run, make sure that a worker serves the queue, and print how to follow it."""
    spec = queue_named(cli.configuration, slot.queue)

    async def work(podium: Podium) -> Handover:
        run = await begin(podium, slot)
        cli.options.parting_note = (
            f"run {run.id} is queued; run it with `podium worker --queue {spec.name} --once`, "
            f"or end it with `podium cancel {run.id}`"
        )
        return await ensure_served(podium, run, spec)

    done = cli.run(work)
    run, more = done.run, done.model_dump(mode="json", exclude={"run"})

    def render() -> None:
        name = short_id(run.id)
        cli.screen.line(f"run {run.id} {_how_it_goes_on(done, spec)}")
        cli.screen.line(
            f"follow it with `podium logs {name} -f`, end it with `podium cancel {name}`"
        )

    record = launch_record(run, detached=True, queue=spec.name, **more)
    cli.screen.answer(record, render)


def _how_it_goes_on(done: Handover, spec: QueueSpec) -> str:
    by = f"started worker {done.worker_pid}, log in {done.log}"
    if done.taken:
        return f"continues in the background: {by if done.worker_pid else 'a worker took it'}"
    if done.run.not_before is not None:
        when = (
            f"is queued in {spec.name!r} and starts at {local_time(done.run.not_before)} or later"
        )
        return f"{when}: {by}" if done.worker_pid else when
    if not done.workers:
        labels = ",".join(spec.labels)
        return (
            f"is queued in {spec.name!r}, but no worker is running for it; on a machine with {labels}, start "
            f"`podium worker --queue {spec.name} --label {labels}`"
        )
    who = counted(done.workers, "worker")
    busy = f"{who} serves it and is" if done.workers == 1 else f"{who} serve it and are"
    others = f"{counted(done.others, 'other run')} {'waits' if done.others == 1 else 'wait'}"
    return f"is queued in {spec.name!r}: {busy} busy, and {others}"


async def ensure_served(podium: Podium, run: Run, spec: QueueSpec) -> Handover:
    """Wait until a worker has the run or serves its queue; start one when none does."""
    store, engine = await podium.store(), await podium.engine()
    log, worker = podium.folders.state / LOG, None
    taken = await _taken_soon(store, engine, run, spec)
    # Asked again: the one who served it may just have been leaving. What a queue wants of its workers
    # is not known to be here: one with labels is left to people.
    if not taken and not spec.labels and not await _serving(store, engine, run, spec):
        worker = _start_worker(podium.folders.project, spec.name, log)
        await _until_served(store, engine, run, spec, worker, log)
        taken = await _taken_soon(store, engine, run, spec)
    tallies = await store.read(lambda view: view.tallies())
    queued = sum(tally.queued for tally in tallies if tally.queue == spec.name)
    itself = not taken and run.not_before is None
    return Handover(
        run=run,
        taken=taken,
        workers=await _serving(store, engine, run, spec),
        others=max(0, queued - itself),
        worker_pid=worker.pid if worker else None,
        log=str(log) if worker else "",
    )


async def _taken_soon(store: Store, engine: Engine, run: Run, spec: QueueSpec) -> bool:
    """Wait for a claim, as long as a free worker would need; True when it is claimed."""
    serves = run.not_before is None and await _serving(store, engine, run, spec)
    return await _taken(store, run.id, _CLAIM_SECONDS if serves else 0.0)


async def _serving(store: Store, engine: Engine, run: Run, spec: QueueSpec) -> int:
    """Count live workers that would take the run."""
    alive, flow = await engine.alive(), f"{run.flow}@{run.flow_version}"
    heartbeats = await store.read(lambda view: view.workers())
    return sum(
        spec.name in heartbeat.queues
        and flow in heartbeat.flows
        and set(spec.labels) <= set(heartbeat.labels)
        for heartbeat in heartbeats
        if heartbeat.id in alive
    )


async def _until_served(
    store: Store,
    engine: Engine,
    run: Run,
    spec: QueueSpec,
    worker: subprocess.Popen[bytes],
    log: Path,
) -> None:
    """Wait for the started worker. Raises `NotPossibleNow` when it exits, or does not come up."""
    end = asyncio.get_running_loop().time() + _START_SECONDS
    while asyncio.get_running_loop().time() < end:
        if await _is_taken(store, run.id) or await _serving(store, engine, run, spec):
            return
        if worker.poll() is not None:
            break
        await _next_change(store)
    code = worker.poll()
    how = "does not serve it yet" if code is None else f"exited with {code}: {_tail(log)}"
    raise NotPossibleNow(
        f"run {run.id} is queued, but the worker started for it {how}; fix that, then run "
        f"`podium worker --queue {spec.name} --once`"
    )


def _start_worker(project: Path, queue: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a worker in its own session, so that it outlives this terminal; not by the launcher, whose
    processes end with us."""
    program = (sys.executable, "-m", "podium")
    file = open_plain(log, flags=os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        return subprocess.Popen(
            [*program, "worker", "--queue", queue, "--once", "--project", str(project)],
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    finally:
        os.close(file)


async def _taken(store: Store, run_id: str, seconds: float) -> bool:
    """Wait for a claim; True when it is claimed in that time."""
    end = asyncio.get_running_loop().time() + seconds
    while not (taken := await _is_taken(store, run_id)):
        if asyncio.get_running_loop().time() >= end:
            break
        await _next_change(store)
    return taken


async def _is_taken(store: Store, run_id: str) -> bool:
    run = await store.read(lambda view: view.run(run_id))
    return run is None or run.status is not RunStatus.QUEUED


async def _next_change(store: Store) -> None:
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
    return lines[-1] if lines else "no output"
