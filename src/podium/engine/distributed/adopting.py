"""Taking runs in Podium's own record for workflows that DBOS handed out: every function is one transaction's part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

from podium.domain.events import RunNeededHuman, RunUnpinned
from podium.domain.work import Failure, Run, RunStatus, WorkerBeat
from podium.engine.distributed.enqueueing import (
    Asked,
    claimants,
    run_of,
    still_held,
    take_back,
    workflow_id,
)
from podium.engine.liveness import Roster
from podium.engine.ownership import Ownership, flow_name
from podium.ports import RunQuery, Tx, View

MOST = 1000
"""Runs that are looked at in one go; what is left comes with the next."""


class Adoption:
    """What a worker may take, and what it must hand back."""

    def __init__(self, ownership: Ownership, roster: Roster, host: str) -> None:
        self._ownership = ownership
        self._roster = roster
        self._host = host

    def adopt(self, tx: Tx, workflows: Sequence[str], token: str) -> list[Run | None]:
        """Take each run that its workflow still stands for. None: it is somebody else's, or over."""
        held = still_held(_asked(tx), workflows, token)
        return [self._adopt_one(tx, *run_of(each)) if each in held else None for each in workflows]

    def _adopt_one(self, tx: Tx, run_id: str, fence: int) -> Run | None:
        run = tx.run(run_id)
        if run is None or run.status is not RunStatus.QUEUED or run.fence != fence:
            # Of several workflows of one run only the newest counts.
            return None
        return self._ownership.take(tx, run)

    def adopted(self, view: View, workflow: str) -> bool:
        """Whether this worker owns the run since the claim of this workflow."""
        run_id, fence = run_of(workflow)
        run = view.run(run_id)
        mine = run is not None and run.owner == self._ownership.worker_id
        return mine and run is not None and run.fence == fence + 1

    def dead(self, view: View) -> set[str]:
        """Workers that are dead and still have claims or runs."""
        return (claimants(_asked(view)) | view.owners()) - self._roster.alive(view)

    def release(self, tx: Tx, dead: Collection[str]) -> None:
        """Take their runs from the dead, who may come back: the fence refuses them from here on."""
        take_back(_asked(tx), set(dead) - self._roster.alive(tx))
        for run in self._roster.orphans(tx):
            if run.owner not in dead:
                continue
            if run.cancel_requested:
                self._ownership.queue_orphan(tx, run)
            else:
                _queue(tx, run)

    # --- runs that DBOS does not know of -----------------------------------------------------

    def suspects(self, view: View) -> dict[str, str]:
        """Workflow → run, for runs of queues that wait for a worker."""
        queued = view.runs(RunQuery(statuses=(RunStatus.QUEUED,), limit=MOST))
        return {workflow_id(run.id, run.fence): run.id for run in queued if run.queue is not None}

    def queue_again(self, tx: Tx, run_ids: Sequence[str]) -> None:
        """Queue runs as new workflows, unless they have moved on meanwhile."""
        for run_id in run_ids:
            run = tx.run(run_id)
            if run is not None and run.status is RunStatus.QUEUED:
                _queue(tx, run)

    def forgettable(self, view: View) -> list[str]:
        """Workers that are dead and own nothing any more."""
        alive, owners = self._roster.alive(view), view.owners()
        return [
            beat.id
            for beat in view.workers()
            if beat.id not in alive | owners and self._roster.is_gone(view, beat.id)
        ]

    def forget_the_dead(self, tx: Tx) -> None:
        """Drop their beats."""
        for worker_id in self.forgettable(tx):
            tx.drop_worker(worker_id)

    # --- runs whose host or code is gone -----------------------------------------------------

    def has_lost(self, view: View) -> bool:
        return bool(self._pinned_to_lost(view) or self._without_code(view))

    def release_lost(self, tx: Tx) -> None:
        """Let other hosts go on with runs of lost ones; ask a person about runs whose code nobody has."""
        for run in self._pinned_to_lost(tx):
            reason = f"no worker on host {run.pinned_to!r} has been heard of"
            tx.append(run.id, RunUnpinned(host=run.pinned_to or "", reason=reason))
            _queue(tx, run.model_copy(update={"pinned_to": None}))
        for run in self._without_code(tx):
            failure = Failure(kind="FlowChanged", message=_no_such_code(run), exit_code=3)
            update = {"status": RunStatus.NEEDS_HUMAN, "owner": None, "failure": failure}
            tx.save_run(run.model_copy(update=update))
            tx.append(run.id, RunNeededHuman(reason=failure.message))

    def _pinned_to_lost(self, view: View) -> list[Run]:
        hosts = {beat.host for beat in self._roster.alive_workers(view)} | {self._host}
        return [
            run
            for run in self._left_alone(view)
            if run.pinned_to is not None and run.pinned_to not in hosts
        ]

    def _without_code(self, view: View) -> list[Run]:
        """Runs of a flow that workers of their queue have, but in no version that fits."""
        alive = self._roster.alive_workers(view)
        return [run for run in self._left_alone(view) if _only_other_versions(run, alive)]

    def _left_alone(self, view: View) -> list[Run]:
        """Runs of queues that nobody works on and that wait for nothing but a worker."""
        queued = view.runs(RunQuery(statuses=(RunStatus.QUEUED,), limit=MOST))
        return [run for run in queued if run.queue is not None] + self._roster.orphans(view)


def _asked(view: View) -> Asked:
    return cast(Asked, view)


def _only_other_versions(run: Run, alive: Sequence[WorkerBeat]) -> bool:
    serving = [beat for beat in alive if run.queue in beat.queues]
    offered = {flow for beat in serving for flow in beat.flows}
    wanted = flow_name(run.flow, run.flow_version)
    return wanted not in offered and any(each.startswith(f"{run.flow}@") for each in offered)


def _queue(tx: Tx, run: Run) -> None:
    """Queue under a new number: DBOS may still have a workflow under the old one."""
    update = {"status": RunStatus.QUEUED, "owner": None, "fence": run.fence + 1}
    tx.save_run(run.model_copy(update=update))


def _no_such_code(run: Run) -> str:
    return (
        f"run {run.id} was started by version {run.flow_version} of flow {run.flow!r}, and no worker "
        f"of queue {run.queue!r} has it any more; start a worker of the Podium it was started with, "
        "then `podium resume` it, or cancel it and start anew"
    )
