"""DBOS workflows enqueued and adopted within the transactions of Podium's own record.

A run gets into DBOS's queue with its own row, and what a dead worker had claimed goes back to it in the
transaction that takes the worker's runs away: two commits would leave a moment in which a place is free
whose run still goes on.

DBOS knows a run as one workflow for each time it is queued. The workflow's number is the run's fence,
which every claim raises: so a run that is queued again is a new workflow, and one that is stored twice is not.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, cast

from podium.core.work import Run, RunStatus
from podium.engine.liveness import HELD, WorkerRoster
from podium.engine.ownership import Ownership, flow_name
from podium.ports import StoreView, Transaction

WORKFLOW = "podium_run"
APPLICATION = "podium"

_MIDDLE = 500_000_000
"""DBOS starts the lowest priority first, Podium the highest."""

_ENQUEUE = (
    "SELECT dbos.enqueue_workflow("
    "workflow_name => :workflow, queue_name => :queue, "
    "positional_args => ARRAY[CAST(:argument AS json)], workflow_id => :id, "
    "app_version => :version, priority => :priority, application_name => :application, "
    "delay_until_epoch_ms => CAST(extract(epoch from clock_timestamp()) * 1000 AS bigint) + :delay)"
)


_STILL_HELD = (
    "SELECT workflow_uuid FROM dbos.workflow_status "
    "WHERE workflow_uuid = ANY(:ids) AND status = 'PENDING' AND owner_xid = :token"
)

_TAKE_BACK = (
    "UPDATE dbos.workflow_status SET status = 'ENQUEUED', owner_xid = NULL, "
    "started_at_epoch_ms = NULL, "
    "updated_at = CAST(extract(epoch from clock_timestamp()) * 1000 AS bigint) "
    # Whoever is stopped in the middle of settling is not waited for: the next sweep comes soon.
    "WHERE workflow_uuid IN (SELECT workflow_uuid FROM dbos.workflow_status "
    "WHERE status = 'PENDING' AND executor_id = ANY(:executors) AND name = :workflow "
    "FOR UPDATE SKIP LOCKED) RETURNING workflow_uuid"
)

_CLAIMANTS = (
    "SELECT DISTINCT executor_id FROM dbos.workflow_status "
    "WHERE status = 'PENDING' AND name = :workflow"
)


_HELD_BY = (
    "SELECT workflow_uuid, owner_xid FROM dbos.workflow_status "
    "WHERE status = 'PENDING' AND executor_id = :executor AND name = :workflow"
)

_CODES = (
    "SELECT DISTINCT queue_name, application_version FROM dbos.workflow_status "
    "WHERE status = 'ENQUEUED' AND name = :workflow"
)

_ASKED_FOR = (
    "SELECT application_version FROM dbos.workflow_status "
    "WHERE queue_name = :queue AND status = 'ENQUEUED' AND name = :workflow "
    "GROUP BY application_version ORDER BY min(priority), min(created_at)"
)

_NEEDING = (
    "SELECT workflow_uuid FROM dbos.workflow_status WHERE status = 'ENQUEUED' "
    "AND name = :workflow AND queue_name = :queue AND application_version = :code LIMIT :most"
)

_UNKNOWN_TO_DBOS = (
    "SELECT id FROM runs WHERE status = 'queued' AND queue IS NOT NULL AND NOT EXISTS ("
    "SELECT 1 FROM dbos.workflow_status WHERE workflow_uuid = runs.id || ':' || runs.fence "
    "AND workflow_status.status IN ('ENQUEUED', 'DELAYED', 'PENDING')) LIMIT :most"
)


class PostgresReader(Protocol):
    """A view or transaction of a record on PostgreSQL, which DBOS's tables lie beside."""

    def ask(self, statement: str, **values: Any) -> list[Any]: ...


def asked(view: StoreView) -> PostgresReader:
    """The view as one that DBOS's tables can be asked through."""
    return cast(PostgresReader, view)


def still_held(tx: PostgresReader, workflows: Sequence[str], token: str) -> set[str]:
    """Those of the workflows that DBOS still has down for who claimed them under this token."""
    return {str(row[0]) for row in tx.ask(_STILL_HELD, ids=list(workflows), token=token)}


def claimants(view: PostgresReader) -> set[str]:
    """The workers that have claims, alive or dead."""
    return {str(row[0]) for row in view.ask(_CLAIMANTS, workflow=WORKFLOW)}


def held_by(view: PostgresReader, executor: str) -> dict[str, str]:
    """Workflow → token, of everything that a worker has claimed and not settled."""
    rows = view.ask(_HELD_BY, executor=executor, workflow=WORKFLOW)
    return {str(row[0]): str(row[1] or "") for row in rows}


def codes_asked_for(view: PostgresReader) -> list[tuple[str, str]]:
    """Queue and code of everything that waits for a worker."""
    return [(str(row[0]), str(row[1])) for row in view.ask(_CODES, workflow=WORKFLOW)]


def asked_for(view: PostgresReader, queue: str) -> list[str]:
    """The codes that runs of a queue need which wait for a worker, those of the first runs first."""
    return [str(row[0]) for row in view.ask(_ASKED_FOR, queue=queue, workflow=WORKFLOW)]


def runs_needing(view: PostgresReader, queue: str, code: str, most: int) -> list[str]:
    rows = view.ask(_NEEDING, workflow=WORKFLOW, queue=queue, code=code, most=most)
    return [run_of(str(row[0]))[0] for row in rows]


def unknown_to_dbos(view: PostgresReader, most: int) -> list[str]:
    """Queued runs that have no workflow which somebody could be given."""
    return [str(row[0]) for row in view.ask(_UNKNOWN_TO_DBOS, most=most)]


def take_back(tx: PostgresReader, executors: Collection[str]) -> None:
    """Queue again what these workers had claimed. Their runs must be taken from them in the same transaction."""
    tx.ask(_TAKE_BACK, executors=list(executors), workflow=WORKFLOW)


class WorkflowConnection(Protocol):
    """A connection within the transaction that stores the run."""

    def execute(self, statement: str, parameters: Mapping[str, Any], /) -> object: ...


def enqueue(sql: WorkflowConnection, run: Run, now: datetime) -> None:
    """Hand a queued run to DBOS, at once or for when its time has come."""
    sql.execute(
        _ENQUEUE,
        {
            "workflow": WORKFLOW,
            "queue": run.queue,
            "argument": json.dumps(run.id),
            "id": workflow_id(run.id, run.fence),
            "version": needed_code(run.flow, run.flow_version, run.pinned_to),
            "priority": _priority(run),
            "application": APPLICATION,
            "delay": _delay_milliseconds(run, now),
        },
    )


def workflow_id(run_id: str, fence: int) -> str:
    return f"{run_id}:{fence}"


def run_of(workflow: str) -> tuple[str, int]:
    """The run that a workflow stands for, and the run's fence when it was queued.

    No run's id for a workflow that is not one of ours.
    """
    run_id, _, fence = workflow.rpartition(":")
    return (run_id, int(fence)) if fence.isdecimal() else ("", 0)


def needed_code(flow: str, version: int, host: str | None) -> str:
    """The application version of DBOS: who does not offer exactly this gets no such run."""
    name = flow_name(flow, version)
    return name if host is None else f"{name}#{host}"


def _priority(run: Run) -> int:
    """A run that was begun comes before fresh ones: its owner died, or what it waited for has come."""
    priority = 2 * max(1, min(_MIDDLE - run.priority, 2 * _MIDDLE))
    return priority - 1 if run.fence > 0 else priority


def _delay_milliseconds(run: Run, now: datetime) -> int | None:
    if run.not_before is None or run.not_before <= now:
        return None
    return int((run.not_before - now).total_seconds() * 1000)


class UnknownClaim(NamedTuple):
    """Workflows that a worker has claimed and does not know of, by what should become of them."""

    mine: dict[tuple[str, int], tuple[str, str]]
    """Run and fence → workflow and token, of runs that are this worker's in the record."""
    queued: list[str]
    """Workflows whose runs still wait: they go back to the queue."""
    over: list[tuple[str, str]]
    """Workflow and token of runs that are over or somebody else's: they are settled."""


class Adoption:
    """The runs that a worker may take, and its takeover of those of the dead."""

    def __init__(self, ownership: Ownership, roster: WorkerRoster) -> None:
        self._ownership = ownership
        self._roster = roster

    def adopt(self, tx: Transaction, workflows: Sequence[str], token: str) -> list[Run | None]:
        """Take each run that its workflow still stands for. None: it is somebody else's, or over."""
        held = still_held(asked(tx), workflows, token)
        return [
            self._adopt_one(tx, *run_of(workflow)) if workflow in held else None
            for workflow in workflows
        ]

    def _adopt_one(self, tx: Transaction, run_id: str, fence: int) -> Run | None:
        run = tx.run(run_id)
        if run is None or run.status is not RunStatus.QUEUED or run.fence != fence:
            # Of several workflows of one run only the newest counts.
            return None
        return self._ownership.take(tx, run)

    def unaccounted(self, view: StoreView, claimed: Collection[str]) -> UnknownClaim:
        """Workflows this worker has claimed beside those it knows of: an answer was lost on the way."""
        unknown = UnknownClaim({}, [], [])
        for workflow, token in held_by(asked(view), self._ownership.worker_id).items():
            if workflow in claimed:
                continue
            run_id, fence = run_of(workflow)
            run = view.run(run_id)
            if run is not None and run.status is RunStatus.QUEUED and run.fence == fence:
                unknown.queued.append(workflow)
            elif run is not None and self._is_mine(run, fence):
                unknown.mine[run_id, run.fence] = (workflow, token)
            else:
                unknown.over.append((workflow, token))
        return unknown

    def _is_mine(self, run: Run, queued_fence: int) -> bool:
        mine = run.owner == self._ownership.worker_id and run.fence == queued_fence + 1
        return mine and run.status in HELD

    def dead(self, view: StoreView) -> set[str]:
        """Workers that are dead and still have claims or runs."""
        return (claimants(asked(view)) | view.owners()) - self._roster.alive(view)

    def release(self, tx: Transaction, dead: Collection[str]) -> None:
        """Take their runs from the dead, who may come back: the fence refuses them from here on."""
        take_back(asked(tx), set(dead) - self._roster.alive(tx))
        for run in self._roster.orphans(tx):
            if run.owner not in dead:
                continue
            if run.cancel_requested:
                self._ownership.queue_orphan(tx, run)
            else:
                queue_anew(tx, run)


def queue_anew(tx: Transaction, run: Run) -> None:
    """Queue under a new number: DBOS may still have a workflow under the old one."""
    update = {"status": RunStatus.QUEUED, "owner": None, "fence": run.fence + 1}
    tx.save_run(run.model_copy(update=update))
