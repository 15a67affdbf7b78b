"""How queues, workers and approvals stand, as gauges. Every process on a store says the same of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from podium.domain.gating import ApprovalStatus
from podium.domain.work import QueueTally, WorkerBeat
from podium.journal.exposition import Family, Gauge
from podium.ports import View

LEASE = timedelta(seconds=15)
"""A worker that has not been heard of for longer is not counted as alive."""

MOST_APPROVALS = 1000
"""More than these are not counted one by one."""


def gauges(view: View, worker_id: str) -> list[Family]:
    """The gauges of one moment; `worker_id` is the process that is asked."""
    now = view.now()
    workers = view.workers()
    return [
        *_queues(view.tallies(), now),
        *_workers(workers, now),
        *_own(next((beat for beat in workers if beat.id == worker_id), None)),
        _approvals(view),
    ]


def _queues(tallies: Sequence[QueueTally], now: datetime) -> list[Family]:
    runs = Gauge(
        "podium_runs", "Runs of queues that have not ended, by status.", ["queue", "status"]
    )
    oldest = Gauge(
        "podium_queue_oldest_seconds",
        "How long the first run that could start has been waiting.",
        ["queue"],
    )
    for tally in tallies:
        for status in ("queued", "delayed", "running", "waiting", "needs_human"):
            runs.put(tally.queue, status, amount=getattr(tally, status))
        waited = (now - (tally.oldest_queued_at or now)).total_seconds()
        oldest.put(tally.queue, amount=max(waited, 0.0))
    return [runs, oldest]


def _workers(beats: Sequence[WorkerBeat], now: datetime) -> list[Family]:
    alive = Gauge("podium_workers", "Processes that host runs and were heard of lately.")
    alive.put(amount=sum(beat.beat_at + LEASE >= now for beat in beats))
    return [alive]


def _own(beat: WorkerBeat | None) -> list[Family]:
    """What this process last said of itself. Nothing before it has."""
    if beat is None:
        return []
    hosting = Gauge("podium_worker_hosting", "Runs this worker works on.")
    room = Gauge("podium_worker_room", "Runs this worker would work on at most.")
    load = Gauge("podium_host_load", "Processes that wanted a core, for each core of the host.")
    about = Gauge("podium_worker_info", "Which Podium this worker runs. Always 1.", ["version"])
    hosting.put(amount=beat.hosting)
    room.put(amount=beat.room)
    load.put(amount=beat.load)
    about.put(beat.podium, amount=1)
    return [hosting, room, load, about]


def _approvals(view: View) -> Family:
    waiting = Gauge(
        "podium_approvals_waiting",
        f"Questions that wait for a person; {MOST_APPROVALS} means that many or more.",
    )
    found = view.approvals(statuses=[ApprovalStatus.PENDING], limit=MOST_APPROVALS)
    waiting.put(amount=len(found))
    return waiting
