"""Workers, queues and running runs as table rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from podium.app.workload import Held, QueueSeen, RunningRun, WorkerSeen, WorkloadSnapshot
from podium.core.ids import short_id
from podium.core.work import QueueSpec
from podium.render.event import shorten
from podium.render.text import counted, safe_line

MAX_TASK = 60
MAX_NAME = 24
"""Characters that are shown of a name somebody else chose."""

_OWN_ID = re.compile(r"[a-z]+_[0-9a-f]{32}")


class Rows(NamedTuple):
    """A table before it is drawn."""

    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def worker_name(worker_id: str) -> str:
    """The short form of an id Podium made, or the name somebody gave."""
    if _OWN_ID.fullmatch(worker_id):
        return short_id(worker_id)
    return safe_line(worker_id, MAX_NAME)


def age(at: datetime | None, now: datetime) -> str:
    """The time since then, in the two largest units."""
    if at is None:
        return ""
    seconds = max(0, int((now - at).total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if not minutes:
        return f"{seconds}s"
    if not hours:
        return f"{minutes}m{seconds % 60:02}s"
    return f"{hours}h{minutes % 60:02}m" if not days else f"{days}d{hours % 24:02}h"


def worker_rows(workers: Sequence[WorkerSeen], now: datetime) -> Rows:
    """Those alive."""
    headers = ("WORKER", "HOST", "UP", "QUEUES", "LABELS", "RUNS", "LOAD", "BEAT", "PODIUM")
    rows = [
        (
            worker_name(heartbeat.id),
            f"{safe_line(heartbeat.host, MAX_NAME)}:{heartbeat.pid}",
            age(heartbeat.started_at, now),
            " ".join(heartbeat.queues) or "-",
            " ".join(heartbeat.labels) or "-",
            # What it holds is newer than its last beat, but need not be all of it.
            _of_limit(max(heartbeat.hosting, len(worker.holds)), heartbeat.room or None),
            f"{heartbeat.load:.2f}",
            age(heartbeat.beat_at, now),
            heartbeat.podium or "-",
        )
        for worker in workers
        if worker.alive and (heartbeat := worker.beat)
    ]
    return Rows(headers, rows)


def held_rows(workers: Sequence[WorkerSeen], now: datetime) -> Rows:
    """Runs that those alive work on."""
    rows = [
        (
            short_id(held.run_id),
            worker_name(worker.id),
            held.status.value,
            age(held.since, now),
            safe_line(held.flow, MAX_NAME),
            safe_line(held.task, MAX_TASK),
        )
        for worker in workers
        if worker.alive
        for held in worker.holds
    ]
    return Rows(("RUN", "WORKER", "STATUS", "FOR", "FLOW", "TASK"), rows)


def dead_lines(worker: WorkerSeen, now: datetime) -> list[str]:
    """One that is gone, each run it still owns, and what becomes of that."""
    heartbeat = worker.beat
    where = f" on {safe_line(heartbeat.host, MAX_NAME)}:{heartbeat.pid}" if heartbeat else ""
    last_heartbeat = f", last heartbeat {age(heartbeat.beat_at, now)} ago" if heartbeat else ""
    lines = [f"worker {worker_name(worker.id)}{where} is gone{last_heartbeat}, and still owns:"]
    for what_next, runs in groupby(worker.holds, key=lambda held: held.next):
        lines += [f"  {_held(held)}" for held in runs]
        lines.append(f"    next: {safe_line(what_next)}")
    return lines


def _held(held: Held) -> str:
    task = f"  {safe_line(held.task, MAX_TASK)}" if held.task else ""
    return f"{short_id(held.run_id)}  {safe_line(held.flow, MAX_NAME)}{task}"


def queue_rows(queues: Sequence[QueueSeen], now: datetime) -> Rows:
    headers = ("QUEUE", "QUEUED", "DELAYED", "RUNNING", "WAITING", "PERSON", "/MIN", "OLDEST")
    rows = [
        (
            safe_line(queue.name, MAX_NAME),
            str(tally.queued),
            str(tally.delayed),
            _of_limit(tally.running, queue.spec.concurrency),
            str(tally.waiting),
            str(tally.needs_human),
            str(queue.ended_lately),
            age(tally.oldest_queued_at, now) or "-",
            str(len(queue.served_by)),
        )
        for queue, tally in ((queue, queue.tally) for queue in queues)
    ]
    return Rows((*headers, "WORKERS"), rows)


def _of_limit(count: int, limit: int | None) -> str:
    return str(count) if limit is None else f"{count}/{limit}"


def limits_text(spec: QueueSpec) -> str:
    """Describe the limits of a queue's runs, and of its workers."""
    limits = [f"{spec.concurrency} at once"] if spec.concurrency is not None else []
    limits.append(f"{spec.worker_concurrency} per worker")
    if spec.rate_limit is not None:
        limits.append(f"{spec.rate_limit} starts in {spec.rate_seconds:g} s")
    if spec.labels:
        limits.append(f"needs {' '.join(spec.labels)}")
    return ", ".join(limits)


def run_rows(runs: Sequence[RunningRun], now: datetime) -> Rows:
    headers = ("RUN", "WORKER", "FOR", "FLOW", "STEP", "IN STEP", "COST", "TASK")
    rows = [
        (
            short_id(run.run_id),
            worker_name(run.owner) if run.hosted and run.owner else "nobody",
            age(run.since, now),
            safe_line(run.flow, MAX_NAME),
            safe_line(shorten(run.step), MAX_TASK) or "-",
            age(run.step_since, now) or "-",
            "" if run.usd is None else f"${run.usd:.2f}",
            safe_line(run.task, MAX_TASK),
        )
        for run in runs
    ]
    return Rows(headers, rows)


def summary(overview: WorkloadSnapshot) -> str:
    """All of it in one line."""
    alive = sum(worker.alive for worker in overview.workers)
    queued = sum(queue.tally.queued for queue in overview.queues)
    running = f"{len(overview.runs)}{'+' if overview.more_runs else ''}"
    people = sum(queue.tally.needs_human for queue in overview.queues)
    ended = sum(queue.ended_lately for queue in overview.queues)
    return (
        f"{counted(alive, 'worker')}, {running} running, {queued} queued, "
        f"{people} needing a person, {ended} ended/min"
    )


def problem_lines(overview: WorkloadSnapshot) -> list[str]:
    """Lines on what needs a person, one for each."""
    gone = [worker_name(worker.id) for worker in overview.workers if not worker.alive]
    left = [f"{', '.join(gone)} gone with runs; see `podium workers`"] if gone else []
    return [*(queue.trouble for queue in overview.queues if queue.trouble), *left]
