"""Writing on PostgreSQL: pipelined statements, one transaction at a time, and cut-off commits settled afterwards."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg

from podium.core.errors import StoreAway
from podium.store.postgres import COMMIT_LOCK, blames_statement, explain, is_passing
from podium.store.postgres_connection import (
    PostgresConnection,
    connect,
    name_of,
    refuse_nul,
    translated,
)
from podium.store.transaction import SqlTransaction
from podium.store.writer import growing_pauses
from podium.telemetry.exposition import StoreFigures

MAX_MESSAGE = 4_000_000
"""Characters that are gathered at most. The server takes a gigabyte, and ends a session that makes ready
what it sends for more than three seconds."""


class PendingRows:
    """Rows of a gathered statement. Asking for them sends everything that was gathered."""

    def __init__(self, line: GatheringConnection) -> None:
        self._line = line
        self.rows: list[Any] | None = None
        self.done = ""
        """The server's name for what was done; empty before."""

    def fetchone(self) -> Any:
        rows = self._fetched()
        return rows.pop(0) if rows else None

    def fetchall(self) -> list[Any]:
        rows = self._fetched()
        taken, rows[:] = list(rows), []
        return taken

    def _fetched(self) -> list[Any]:
        if not self.done:
            self._line.send()
        if self.rows is None:
            raise psycopg.ProgrammingError("the statement returns no rows")
        return self.rows


class GatheringConnection(PostgresConnection):
    """On a network, waiting for answers is what takes the time: a transaction waits for its reads alone.

    One message is executed when all of it has arrived. So the server is idle whenever this process is at
    work, and ends the session of one that is stopped halfway; a pipeline would leave it waiting for more.
    """

    def __init__(self, connection: PostgresConnection) -> None:
        super().__init__(connection.raw, connection.name)
        self._quoting = psycopg.ClientCursor(connection.raw)
        self._gathered: list[tuple[str, PendingRows]] = []
        self._characters = 0
        self.wrote = False
        """True if anything may have been changed since this was last set."""

    def execute(self, statement: str, values: Mapping[str, Any] | None = None, /) -> PendingRows:
        self.wrote = self.wrote or not statement.startswith("SELECT")
        return self.control(statement, **(values or {}))

    def control(self, statement: str, **values: Any) -> PendingRows:
        """Execute a statement that changes nothing of the record itself."""
        try:
            text = self._quoting.mogrify(translated(statement), values)
        except psycopg.DataError:
            refuse_nul(values)
            raise
        answer = PendingRows(self)
        self._gathered.append((text, answer))
        self._characters += len(text)
        if self._characters > MAX_MESSAGE:
            self.send()
        return answer

    def send(self) -> None:
        """Have everything done that was gathered. Raises the first error; what follows it is not done."""
        gathered, self._gathered = self._gathered, []
        self._characters = 0
        if not gathered:
            return
        message = ";\n".join(text for text, _ in gathered)
        cursor = self.raw.execute(message.encode(), prepare=False)
        for _, answer in gathered:
            answer.rows = cursor.fetchall() if cursor.description else None
            answer.done = cursor.statusmessage or "done"
            cursor.nextset()

    def commit(self) -> None:
        """Raises also when the server took the transaction back in silence, as it does after an error."""
        ended = self.control("COMMIT")
        self.send()
        if ended.done != "COMMIT":
            raise psycopg.errors.InFailedSqlTransaction(
                "a statement failed and was ignored; the transaction was rolled back"
            )

    def roll_back(self) -> None:
        """End the transaction without a trace. Raises when the line is lost."""
        self._gathered, self._characters = [], 0
        self.control("ROLLBACK")
        self.send()


CHANNEL = "podium"
"""Channel on which the listeners of all processes are told of commits."""

RETENTION_MICROSECONDS = 24 * 3600 * 1_000_000
"""After so long without a commit a writer's row is cleared away by another one that ends."""

MICROSECONDS_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
"""SQL for the database's time."""


class TransactionStart(NamedTuple):
    """Facts that a transaction begins with, all of them looked up in one exchange."""

    now_microseconds: int
    """By the database's clock."""
    last_position: int
    """Of the newest event."""
    last_seqs: dict[str, int]
    """Of the runs that were asked for."""


class PostgresDriver:
    """The write connection, made anew whenever it is lost.

    Every transaction holds one lock from its first statement on: transactions of all processes are serial,
    so that positions rise in the order of commits, and what a work reads nobody changes before it is kept.
    """

    def __init__(
        self,
        url: str,
        begin: Callable[[GatheringConnection, TransactionStart], SqlTransaction],
        figures: StoreFigures,
        patience_seconds: float,
    ) -> None:
        """`begin` makes the transaction's object on an open transaction."""
        self.name = name_of(url)
        self.patience_seconds = patience_seconds
        self._url = url
        self._begin = begin
        self._figures = figures
        self._id = secrets.token_hex(16)
        self._commits = 0
        self._line: GatheringConnection | None = None
        self._was_lost = False
        self.process_id: int | None = None
        """The server's number for this connection, by which its notices are told from others'."""

    def begin_now(self) -> SqlTransaction | None:
        return None

    def begin(self, runs: Collection[str]) -> SqlTransaction:
        line = self._connection()
        try:
            start = self._take_turn(line, runs)
        except BaseException:
            self.take_back()
            raise
        return self._begin(line, start)

    def commit(self) -> None:
        """Raises `StoreAway` when the line was lost and whether it was kept could not be found out."""
        line = self._begun()
        if line.wrote:
            self._commits += 1
            line.control(
                "INSERT INTO writers (id, last, at) "  # noqa: S608 - fixed words
                f"VALUES (:id, :last, {MICROSECONDS_NOW}) "
                "ON CONFLICT (id) DO UPDATE SET last = excluded.last, at = excluded.at",
                id=self._id,
                last=self._commits,
            )
            line.control(f"NOTIFY {CHANNEL}")
        try:
            line.commit()
        except psycopg.Error as error:
            if not line.wrote or not is_passing(error) or not self._was_committed(error):
                raise

    def take_back(self) -> None:
        line = self._line
        if line is None:
            return
        try:
            line.roll_back()
        except psycopg.Error:
            self._drop()

    def set_savepoint(self) -> None:
        self._begun().control("SAVEPOINT work")

    def rollback_to_savepoint(self) -> None:
        self._begun().control("ROLLBACK TO work")

    def release_savepoint(self) -> None:
        self._begun().control("RELEASE work")

    def explained(self, error: BaseException) -> BaseException:
        return explain(error, self._url) if isinstance(error, psycopg.Error) else error

    def is_own(self, error: BaseException) -> bool:
        return isinstance(error, psycopg.Error)

    def blames_one_work(self, error: BaseException) -> bool:
        return blames_statement(error)

    def may_pass(self, error: BaseException) -> bool:
        return is_passing(error)

    def freed_reserve(self, error: BaseException) -> bool:
        return False  # the disk is the server's

    def close(self) -> None:
        if self._line is not None and self._commits:
            with suppress(psycopg.Error):
                self._line.control(
                    f"DELETE FROM writers WHERE id = :id OR at < {MICROSECONDS_NOW} - :kept",  # noqa: S608
                    id=self._id,
                    kept=RETENTION_MICROSECONDS,
                )
                self._line.send()
        self._drop()

    def _begun(self) -> GatheringConnection:
        """The line that the transaction was begun on: on another one there is none."""
        if self._line is None:
            raise psycopg.OperationalError("the connection was lost within a transaction")
        return self._line

    def _connection(self) -> GatheringConnection:
        if self._line is not None and self._line.is_lost:
            self._drop()
        if self._line is None:
            self._line = GatheringConnection(connect(self._url))
            self.process_id = self._line.raw.info.backend_pid
            if self._was_lost:
                self._figures.reconnected()
            self._was_lost = False
        return self._line

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
            self._was_lost = True

    def _take_turn(self, line: GatheringConnection, runs: Collection[str] = ()) -> TransactionStart:
        line.control("BEGIN ISOLATION LEVEL READ COMMITTED")
        # A statement of its own: what the next one sees is then of after the lock was given.
        line.control("SELECT pg_advisory_xact_lock(:key)", key=COMMIT_LOCK)
        times = line.control(f"SELECT {MICROSECONDS_NOW}, (SELECT max(position) FROM events)")  # noqa: S608
        ends = line.control(
            "SELECT run, coalesce((SELECT max(seq) FROM events WHERE run_id = run), 0) "
            "FROM unnest(CAST(:runs AS TEXT[])) AS run",
            runs=list(runs),
        )
        now, position = times.fetchone()
        line.wrote = False
        return TransactionStart(now, position or 0, dict(ends.fetchall()))

    def _was_committed(self, error: psycopg.Error) -> bool:
        """Tell whether the last commit went through although its answer was lost.

        Its transaction wrote a number that only it wrote, and held the lock until its end: who has the lock
        after it sees whether the number is there. The server's own numbers for transactions would not do,
        because after a crash it gives out again those of which nothing had reached the disk.
        """
        for pause in growing_pauses(self.patience_seconds):
            try:
                self._drop()
                line = self._connection()
                self._take_turn(line)
                row = line.control(
                    "SELECT last FROM writers WHERE id = :id", id=self._id
                ).fetchone()
                self.take_back()
                return row is not None and row[0] == self._commits
            except psycopg.Error:
                time.sleep(pause)
        raise StoreAway(
            f"{self.name}: the connection was lost during a commit, and whether it succeeded is not known "
            "until the server is back; check before you run the command again"
        ) from error
