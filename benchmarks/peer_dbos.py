"""DBOS by itself, with its own decorators, queue and JSON: what Podium's engine is held against.

`python -m benchmarks.peer_dbos URL ROOM` is one of its workers.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from benchmarks.crew import module, say

STEPS = 10
BODY = "x" * 200
QUEUE = "bench"
APPLICATION = "peer"
VERSION = "1"
POLLING_SECONDS = 0.02
"""DBOS looks once a second unless told otherwise, which would be all that is measured."""

COUNTING = (
    "SELECT (SELECT count(*) FROM dbos.operation_outputs), "
    "(SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS')"
)


async def fill(url: str, runs: int) -> None:
    """Make DBOS's tables and queue so many runs."""
    await asyncio.to_thread(_fill, url, runs)


def command(url: str, room: int) -> list[str]:
    return module("peer_dbos", url, str(room))


def _fill(url: str, runs: int) -> None:
    from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer

    DBOS.migrate(url)
    client = DBOSClient(
        system_database_url=url,
        serializer=DBOSPortableJSONSerializer(),
        application_name=APPLICATION,
    )
    for _ in range(runs):
        client.enqueue({"workflow_name": "work", "queue_name": QUEUE, "app_version": VERSION})
    client.destroy()


def _work(url: str, room: int) -> None:
    # No event loop of ours: DBOS refuses its plain methods where one is running.
    from dbos import DBOS, DBOSPortableJSONSerializer

    config: Any = {
        "name": APPLICATION,
        "system_database_url": url,
        "application_version": VERSION,
        "executor_id": f"peer-{os.getpid()}",
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "ERROR",
    }
    DBOS(config=config)
    _register_workflow()
    say(ready=True)
    sys.stdin.readline()
    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=room, polling_interval_sec=POLLING_SECONDS)
    sys.stdin.readline()
    DBOS.destroy()


def _register_workflow() -> None:
    # Functions that are not async: DBOS takes a millisecond less for each of their steps.
    from dbos import DBOS

    @DBOS.step()
    def nothing() -> str:
        return BODY

    @DBOS.workflow(name="work")
    def work() -> None:
        for _ in range(STEPS):
            nothing()


if __name__ == "__main__":
    _work(sys.argv[1], int(sys.argv[2]))
