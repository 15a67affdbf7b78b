"""Runs that nobody would ever be given: their host is lost, their code is gone, or DBOS does not know them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from podium.domain.events import RunNeededHuman, RunUnpinned
from podium.domain.work import Failure, Run, RunStatus, WorkerBeat
from podium.engine.distributed.adopting import queue_anew
from podium.engine.distributed.enqueueing import (
    asked,
    codes_asked_for,
    runs_needing,
    unknown_to_dbos,
)
from podium.engine.liveness import Roster
from podium.ports import Tx, View

MOST = 1000
"""Runs that are put right in one go; what is left comes with the next."""


class Losses:
    """One worker's look for them, every few seconds."""

    def __init__(self, roster: Roster, host: str, pin_seconds: float) -> None:
        self._roster = roster
        self._host = host
        self._patience = timedelta(seconds=pin_seconds)
        self._missed: dict[str, datetime] = {}
        """Host → since when no worker of it was heard of."""

    def any(self, view: View) -> bool:
        return bool(
            self._lost_hosts(view) or self._lost_codes(view) or self._forgettable(view)
        ) or bool(unknown_to_dbos(asked(view), 1))

    def put_right(self, tx: Tx) -> None:
        for queue, code in self._lost_hosts(tx):
            for run in _waiting(tx, queue, code):
                reason = f"no worker on host {run.pinned_to!r} has been heard of"
                tx.append(run.id, RunUnpinned(host=run.pinned_to or "", reason=reason))
                queue_anew(tx, run.model_copy(update={"pinned_to": None}))
        for queue, code in self._lost_codes(tx):
            for run in _waiting(tx, queue, code):
                _ask_a_person(tx, run)
        for run_id in unknown_to_dbos(asked(tx), MOST):
            unknown = tx.run(run_id)
            if unknown is not None:
                queue_anew(tx, unknown)
        for worker_id in self._forgettable(tx):
            tx.drop_worker(worker_id)

    def _lost_hosts(self, view: View) -> list[tuple[str, str]]:
        """Queue and code of runs pinned to hosts that have been silent for too long."""
        now = view.now()
        heard = {beat.host for beat in self._roster.alive_workers(view)} | {self._host}
        wanted = [
            (queue, code, code.partition("#")[2]) for queue, code in codes_asked_for(asked(view))
        ]
        missing = {host for _, _, host in wanted if host and host not in heard}
        self._missed = {host: self._missed.get(host, now) for host in missing}
        lost = {host for host, since in self._missed.items() if now - since >= self._patience}
        return [(queue, code) for queue, code, host in wanted if host in lost]

    def _lost_codes(self, view: View) -> list[tuple[str, str]]:
        """Queue and code of runs of a flow that workers of their queue have, but in no version that fits."""
        alive = self._roster.alive_workers(view)
        return [
            (queue, code)
            for queue, code in codes_asked_for(asked(view))
            if _only_other_versions(queue, code.partition("#")[0], alive)
        ]

    def _forgettable(self, view: View) -> list[str]:
        """Workers that are dead and own nothing any more."""
        alive, owners = self._roster.alive(view), view.owners()
        return [
            beat.id
            for beat in view.workers()
            if beat.id not in alive | owners and self._roster.is_gone(view, beat.id)
        ]


def _waiting(view: View, queue: str, code: str) -> Iterator[Run]:
    for run_id in runs_needing(asked(view), queue, code, MOST):
        run = view.run(run_id)
        if run is not None and run.status is RunStatus.QUEUED:
            yield run


def _only_other_versions(queue: str, flow: str, alive: Sequence[WorkerBeat]) -> bool:
    offered = {each for beat in alive if queue in beat.queues for each in beat.flows}
    name = flow.rpartition("@")[0]
    return flow not in offered and any(each.startswith(f"{name}@") for each in offered)


def _ask_a_person(tx: Tx, run: Run) -> None:
    reason = (
        f"run {run.id} was started by version {run.flow_version} of flow {run.flow!r}, and no worker "
        f"of queue {run.queue!r} has it any more; start a worker of the Podium it was started with, "
        "then `podium resume` it, or cancel it and start anew"
    )
    failure = Failure(kind="FlowChanged", message=reason, exit_code=3)
    update = {"status": RunStatus.NEEDS_HUMAN, "owner": None, "failure": failure}
    tx.save_run(run.model_copy(update=update))
    tx.append(run.id, RunNeededHuman(reason=reason))
