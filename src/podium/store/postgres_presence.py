"""Presence on PostgreSQL: a lock held by a connection that a thread keeps open."""

from __future__ import annotations

import asyncio
import hashlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from podium.core.errors import LockHeld
from podium.core.work import WorkerHeartbeat
from podium.ports import StoreView
from podium.store.postgres import explained
from podium.store.postgres_connection import PostgresConnection, connect
from podium.store.view import SqlView
from podium.store.writer import growing_pauses

LOOK_SECONDS = 3.0
"""Interval at which a silent connection is tried."""


class PersistentConnection:
    """Set up again whenever it is lost, for as long as it takes.

    `set_up` is called on every new connection, `look` now and then, `heard` with the server's numbers of
    the connections that sent notices, `let_go` at the end. All of them in the thread; what they raise makes
    the line be set up anew.
    """

    def __init__(
        self,
        url: str,
        *,
        set_up: Callable[[PostgresConnection], None],
        look: Callable[[PostgresConnection], None],
        callback: Callable[[Sequence[int]], None] = lambda _: None,
        let_go: Callable[[PostgresConnection], None] = lambda _: None,
        connected: PostgresConnection | None = None,
        name: str,
    ) -> None:
        """`connected` is a connection that was set up already, to begin with."""
        self._url = url
        self._set_up = set_up
        self._look = look
        self._callback = callback
        self._let_go = let_go
        self._ended = threading.Event()
        self._stop_here, self._stop_there = os.pipe()
        self._thread = threading.Thread(
            target=self._serve, args=(connected,), name=name, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Let go of the line, soon. Harmless when called twice."""
        if not self._ended.is_set():
            # In this order: once it has ended, the thread closes the pipe.
            os.write(self._stop_there, b"\0")
            self._ended.set()

    def join(self) -> None:
        """Wait until it is let go of, after `stop`."""
        self._thread.join()

    def _serve(self, connection: PostgresConnection | None) -> None:
        pauses = growing_pauses(float("inf"))
        try:
            while not self._ended.is_set():
                try:
                    if connection is None:
                        connection = connect(self._url)
                        self._set_up(connection)
                    pauses = growing_pauses(float("inf"))
                    self._attend(connection)
                    self._let_go(connection)
                except Exception:
                    # Whatever it is: a thread that ended would leave everybody deaf without a word.
                    self._ended.wait(next(pauses))
                if connection is not None:
                    connection.close()
                    connection = None
        finally:
            os.close(self._stop_here)
            os.close(self._stop_there)

    def _attend(self, connection: PostgresConnection) -> None:
        """Until the line is lost, which raises, or let go of."""
        ready = select.poll()
        ready.register(connection.raw.fileno(), select.POLLIN)
        ready.register(self._stop_here, select.POLLIN)
        looked = time.monotonic()
        while not self._ended.is_set():
            ready.poll(max(0.0, looked + LOOK_SECONDS - time.monotonic()) * 1000)
            if self._ended.is_set():
                return
            if senders := _notices(connection):
                self._callback(senders)
            if time.monotonic() - looked >= LOOK_SECONDS:
                self._look(connection)
                looked = time.monotonic()


def _notices(connection: PostgresConnection) -> list[int]:
    """Process numbers of the senders of what has arrived. Does not wait. Raises when the line is lost."""
    raw = connection.raw.pgconn
    raw.consume_input()
    senders = []
    while (notice := raw.notifies()) is not None:
        senders.append(notice.be_pid)
    return senders


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
        self._line: PersistentConnection | None = None

    async def enter(self, worker_id: str) -> None:
        await self.leave()
        connection = await asyncio.to_thread(self._marked, worker_id)
        self._line = PersistentConnection(
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

    def present(self, view: StoreView, workers: list[WorkerHeartbeat]) -> set[str]:
        ids = [worker.id for worker in workers]
        if not ids or _age_of_server(view) < self._young_seconds:
            return set(ids)
        return _with_held_lock(view, ids)

    def is_gone(self, view: StoreView, worker: WorkerHeartbeat | None) -> bool:
        if worker is None:
            return True
        if _with_held_lock(view, [worker.id]):
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
            f"another process is running as {worker_id!r}; stop it, or wait until the server notices its end"
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


def _age_of_server(view: StoreView) -> float:
    [row] = _sql(view).ask(
        "SELECT extract(epoch from clock_timestamp() - pg_postmaster_start_time())"
    )
    return float(row[0])


def _sql(view: StoreView) -> SqlView:
    if not isinstance(view, SqlView):
        raise TypeError(f"not a view of a PostgreSQL database: {type(view).__name__}")
    return view


def _with_held_lock(view: StoreView, worker_ids: Sequence[str]) -> set[str]:
    """Those of the workers whose lock somebody holds."""
    # A lock on a 64-bit number is shown as two halves.
    rows = _sql(view).ask(
        "SELECT (CAST(classid AS BIGINT) << 32) | CAST(objid AS BIGINT) FROM pg_locks "
        "WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    held = {int(row[0]) for row in rows}
    return {worker_id for worker_id in worker_ids if _key(worker_id) in held}
