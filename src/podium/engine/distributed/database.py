"""Everything of DBOS that Podium uses, public and private, in one place.

DBOS is made to run workflows in its own process-wide singleton. Podium lets it own what it is good at,
which run goes to whom, and runs flows by itself: so it works through `DBOSClient`, of which a process may
have several, and four methods of the client's system database that DBOS's own workers use. They are not
public; `check_installed` says at start whether they are what this was written for.
"""

from __future__ import annotations

import copy
import importlib.metadata
import inspect
import logging
import os
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.core.errors import StoreAway, UserMustAct
from podium.core.work import QueueSpec
from podium.engine.distributed.workflows import APPLICATION, WORKFLOW

if TYPE_CHECKING:
    from dbos import DBOSClient

WRITTEN_FOR = "3.3.0"
SCHEMA = "dbos"

_TRIES = 6
"""Tries of a claim that meets another worker's: DBOS gives up at once instead of waiting."""

_PRIVATE: dict[str, tuple[str, ...]] = {
    "start_queued_workflows": (
        "queue",
        "executor_id",
        "app_version",
        "queue_partition_key",
        "local_running_count",
        "owner_xid",
    ),
    "update_workflow_outcome": ("workflow_id", "status", "owner_xid"),
    "reenqueue_for_recovery": ("workflow_id", "executor_ids", "recovery_queue_name"),
    "transition_delayed_workflows": (),
}
"""Methods of DBOS's system database that are used, with the parameters they are called by."""


class DbosClaim(NamedTuple):
    """A workflow that DBOS gave to this process, until it is settled."""

    workflow_id: str
    token: str
    """DBOS refuses the settling by anybody who does not have it."""


class DbosDatabase:
    """One process's way to DBOS's tables. All methods block: call them in a thread."""

    def __init__(self, url: str) -> None:
        check_installed()
        self._url = url
        self._client = _client(url)
        self._queues: dict[str, Any] = {}

    def register(self, queue: QueueSpec) -> None:
        """Make the queue's limits known to all workers. What was said last counts."""
        limiter = {"limit": queue.rate_limit, "period": queue.rate_seconds}
        with _explained():
            self._queues[queue.name] = self._client.register_queue(
                queue.name,
                global_concurrency=queue.concurrency,
                limiter=limiter if queue.rate_limit is not None else None,  # type: ignore[arg-type]
                application_name=APPLICATION,
            )

    def claim(self, queue: str, executor: str, code: str, slots: int) -> list[DbosClaim]:
        """Take up to so many workflows of a queue within its limits."""
        limited = copy.copy(self._queues[queue])
        limited._worker_concurrency = slots
        for attempt in range(_TRIES):
            token = uuid.uuid4().hex
            try:
                with _explained():
                    ids, _ = self._client._sys_db.start_queued_workflows(
                        limited, executor, code, None, 0, owner_xid=token
                    )
                return [DbosClaim(workflow, token) for workflow in ids]
            except _QueueContended:
                time.sleep(random.uniform(0.001, 0.004) * (attempt + 1))  # noqa: S311 - no secret
        return []

    def settle(self, claim: DbosClaim) -> None:
        """Give back the place that a claim holds. Nothing when it is somebody else's by now."""
        with _explained():
            self._client._sys_db.update_workflow_outcome(
                claim.workflow_id, "SUCCESS", owner_xid=claim.token
            )

    def recover(self, executor: str) -> int:
        """Queue again what a dead worker had claimed; how many that was. Harmless when done twice."""
        with _explained():
            held = self._client.list_workflows(
                status="PENDING",
                executor_id=executor,
                limit=10_000,
                load_input=False,
                load_output=False,
            )
            return sum(
                self._client._sys_db.reenqueue_for_recovery(
                    workflow.workflow_id, [executor], str(workflow.queue_name)
                )
                for workflow in held
            )

    def wake_delayed(self) -> None:
        """Queue what was to start later and is due."""
        with _explained():
            self._client._sys_db.transition_delayed_workflows()

    def give_back(self, workflow: str, executor: str) -> None:
        """Queue a claim again that this process cannot work on."""
        with _explained():
            self._client._sys_db.reenqueue_for_recovery(workflow, [executor], "")

    def forget_settled(self, before: str, limit: int = 500) -> int:
        """Remove workflows that were settled before then (ISO time); how many that was."""
        with _explained():
            settled = self._client.list_workflows(
                name=WORKFLOW,
                status=["SUCCESS", "CANCELLED", "ERROR"],
                completed_before=before,
                limit=limit,
                load_input=False,
                load_output=False,
            )
            self._client.delete_workflows([workflow.workflow_id for workflow in settled])
        return len(settled)

    def close(self) -> None:
        self._client.destroy()


def check_installed() -> None:
    """Raises `UserMustAct` unless DBOS is installed and is what this module was written for."""
    hint = f"install it with `pip install 'podium[distributed]'` (dbos=={WRITTEN_FOR})"
    try:
        version = importlib.metadata.version("dbos")
    except importlib.metadata.PackageNotFoundError:
        raise UserMustAct(f"PostgreSQL needs the package dbos; {hint}") from None
    if version != WRITTEN_FOR:
        raise UserMustAct(
            f"dbos {version} is installed, but this Podium needs {WRITTEN_FOR}; {hint}"
        )
    _quieten()
    from dbos._sys_db import SystemDatabase

    for name, parameters in _PRIVATE.items():
        method = getattr(SystemDatabase, name, None)
        signature = inspect.signature(method).parameters if method else {}
        if method is None or any(parameter not in signature for parameter in parameters):
            raise UserMustAct(f"dbos {version} differs from {WRITTEN_FOR} in `{name}`; {hint}")
    _refuse_pickle()


def migrate(url: str) -> None:
    """Make or lift DBOS's own tables. Several processes may do it at once."""
    check_installed()
    from dbos import DBOS

    with _explained():
        DBOS.migrate(_sqlalchemy_url(url), schema=SCHEMA)


def _client(url: str) -> DBOSClient:
    from dbos import DBOSClient
    from dbos._serialization import DBOSPortableJSONSerializer

    return DBOSClient(
        system_database_url=_sqlalchemy_url(url),
        dbos_system_schema=SCHEMA,
        serializer=DBOSPortableJSONSerializer(),
        system_database_pool_size=2,
        application_name=APPLICATION,
        lazy=True,
        retry_connection_errors=False,
        sys_db_idle_transaction_timeout_sec=3.0,
    )


def _sqlalchemy_url(url: str) -> str:
    """DBOS takes the short form of the scheme only."""
    return "postgresql://" + url.partition("://")[2]


def _quieten() -> None:
    """DBOS says seventy lines at its first start, and obeys variables that lead to its maker's cloud."""
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    for name in [name for name in os.environ if name.startswith("DBOS_")]:
        del os.environ[name]


def _refuse_pickle() -> None:
    """A row that says it is pickled would be executed by whoever lists it, whatever the serializer."""
    from dbos._serialization import DefaultSerializer

    def refuse(self: object, serialized_data: str) -> Any:
        raise ValueError("a pickled row is not read, because Podium writes only JSON")

    DefaultSerializer.deserialize = refuse  # type: ignore[method-assign, assignment]


class _QueueContended(Exception):
    """Another worker is claiming from the same queue at this moment."""


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the driver's errors into ours: the connection passes, contention is tried again."""
    from psycopg import errors
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.exc import TimeoutError as PoolTimeout

    try:
        yield
    except DBAPIError as error:
        contended = errors.LockNotAvailable, errors.SerializationFailure, errors.DeadlockDetected
        if isinstance(error.orig, contended):
            raise _QueueContended("DBOS's rows are locked by another worker") from error
        raise StoreAway(f"DBOS's tables cannot be reached: {error.orig}") from error
    except PoolTimeout as error:
        raise StoreAway(f"DBOS's tables cannot be reached: {error}") from error
