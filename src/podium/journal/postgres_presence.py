"""Presence on PostgreSQL: a lock that the server holds for as long as a process's connection stands."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import Sequence
from datetime import timedelta

from podium.domain.errors import LockHeld
from podium.domain.work import WorkerBeat
from podium.journal.postgres_connection import PostgresConnection, connect
from podium.journal.postgres_errors import explained
from podium.journal.standing import StandingLine
from podium.journal.view import SqlView
from podium.ports import View

LOST_LINE_SECONDS = 20.0
"""A worker whose line was cut makes it anew: so long after its last beat it is taken for alive."""

YOUNG_SERVER_SECONDS = 8.0
"""A server that was started again has lost every mark; so long its workers have to take theirs again."""


class PostgresPresence:
    """One connection that holds this process's mark. Lost, it is made anew and the mark taken again."""

    def __init__(
        self, url: str, host: str = "", *, young_seconds: float = YOUNG_SERVER_SECONDS
    ) -> None:
        """`host` names this machine where its own name does not.

        `young_seconds` after the server's start a mark that is missing says nothing.
        """
        self._young_seconds = young_seconds
        self._url = url
        self._host = host or socket.gethostname()
        self._line: StandingLine | None = None

    async def enter(self, worker_id: str) -> None:
        await self.leave()
        connection = await asyncio.to_thread(self._marked, worker_id)
        self._line = StandingLine(
            self._url,
            set_up=lambda line: _take(line, worker_id),
            look=_touch,
            let_go=_give_back,
            connected=connection,
            name="podium-presence",
        )

    async def leave(self) -> None:
        if self._line is not None:
            line, self._line = self._line, None
            line.stop()
            await asyncio.to_thread(line.join)

    def present(self, view: View, workers: list[WorkerBeat]) -> set[str]:
        ids = [worker.id for worker in workers]
        if not ids or _age_of_server(view) < self._young_seconds:
            return set(ids)
        return _standing(view, ids)

    def is_gone(self, view: View, worker: WorkerBeat | None) -> bool:
        if worker is None:
            return True
        if _standing(view, [worker.id]):
            return False
        if worker.host == self._host and not _runs(worker.pid):
            return True
        return view.now() - worker.beat_at > timedelta(seconds=LOST_LINE_SECONDS)

    def sweep(self) -> None:
        """The server lets go of a lock by itself."""

    def _marked(self, worker_id: str) -> PostgresConnection:
        with explained(self._url):
            connection = connect(self._url)
            try:
                _take(connection, worker_id)
            except BaseException:
                connection.close()
                raise
            return connection


def _take(connection: PostgresConnection, worker_id: str) -> None:
    row = connection.execute("SELECT pg_try_advisory_lock(:key)", {"key": _key(worker_id)})
    if not row.fetchone()[0]:
        raise LockHeld(
            f"another process is at work as {worker_id!r}; end it, or wait until the server has seen its end"
        )


def _give_back(connection: PostgresConnection) -> None:
    # A session that is merely closed keeps its locks until the server has got round to its end.
    connection.execute("SELECT pg_advisory_unlock_all()").fetchone()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _touch(connection: PostgresConnection) -> None:
    connection.execute("SELECT 1").fetchone()


def _key(worker_id: str) -> int:
    """A worker's number among the server's advisory locks."""
    digest = hashlib.sha256(f"podium worker {worker_id}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _age_of_server(view: View) -> float:
    [row] = _sql(view).ask(
        "SELECT extract(epoch from clock_timestamp() - pg_postmaster_start_time())"
    )
    return float(row[0])


def _sql(view: View) -> SqlView:
    if not isinstance(view, SqlView):
        raise TypeError(f"no view of a PostgreSQL database: {type(view).__name__}")
    return view


def _standing(view: View, worker_ids: Sequence[str]) -> set[str]:
    """Those of the workers whose lock somebody holds."""
    # A lock on a 64-bit number is shown as two halves.
    rows = _sql(view).ask(
        "SELECT (CAST(classid AS BIGINT) << 32) | CAST(objid AS BIGINT) FROM pg_locks "
        "WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    held = {int(row[0]) for row in rows}
    return {worker_id for worker_id in worker_ids if _key(worker_id) in held}
