"""Connections to PostgreSQL that gather statements, and send them as one message once an answer is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg

from podium.journal.postgres_connection import PostgresConnection, refuse_nul, translated

LARGEST_MESSAGE = 4_000_000
"""Characters that are gathered at most. The server takes a gigabyte, and ends a session that makes ready
what it sends for more than three seconds."""


class Answer:
    """Rows of a gathered statement. Asking for them sends everything that was gathered."""

    def __init__(self, line: GatheringConnection) -> None:
        self._line = line
        self.rows: list[Any] | None = None
        self.done = ""
        """What the server calls that which it did; empty before."""

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
            raise psycopg.ProgrammingError("the statement gives no rows")
        return self.rows


class GatheringConnection(PostgresConnection):
    """On a network, waiting for answers is what takes the time: a transaction waits for its reads alone.

    One message is executed when all of it has arrived. So the server is idle whenever this process is at
    work, and ends the session of one that is stopped halfway; a pipeline would leave it waiting for more.
    """

    def __init__(self, connection: PostgresConnection) -> None:
        super().__init__(connection.raw, connection.name)
        self._quoting = psycopg.ClientCursor(connection.raw)
        self._gathered: list[tuple[str, Answer]] = []
        self._characters = 0
        self.wrote = False
        """Whether anything may have been changed since this was last set."""

    def execute(self, statement: str, values: Mapping[str, Any] | None = None, /) -> Answer:
        self.wrote = self.wrote or not statement.startswith("SELECT")
        return self.control(statement, **(values or {}))

    def control(self, statement: str, **values: Any) -> Answer:
        """Execute a statement that changes nothing of the record itself."""
        try:
            text = self._quoting.mogrify(translated(statement), values)
        except psycopg.DataError:
            refuse_nul(values)
            raise
        answer = Answer(self)
        self._gathered.append((text, answer))
        self._characters += len(text)
        if self._characters > LARGEST_MESSAGE:
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
                "a statement failed and was passed over; nothing of the transaction was kept"
            )

    def roll_back(self) -> None:
        """End the transaction without a trace. Raises when the line is lost."""
        self._gathered, self._characters = [], 0
        self.control("ROLLBACK")
        self.send()
