"""A connection to PostgreSQL that a thread keeps standing: for listening, and for marks that it holds."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Sequence

from podium.journal.postgres_connection import PostgresConnection, connect
from podium.journal.writer import growing_pauses

LOOK_SECONDS = 3.0
"""How often the line is tried although nothing came over it."""


class StandingLine:
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
        heard: Callable[[Sequence[int]], None] = lambda _: None,
        let_go: Callable[[PostgresConnection], None] = lambda _: None,
        connected: PostgresConnection | None = None,
        name: str,
    ) -> None:
        """`connected` is a connection that was set up already, to begin with."""
        self._url = url
        self._set_up = set_up
        self._look = look
        self._heard = heard
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
                self._heard(senders)
            if time.monotonic() - looked >= LOOK_SECONDS:
                self._look(connection)
                looked = time.monotonic()


def _notices(connection: PostgresConnection) -> list[int]:
    """Who sent what has arrived. Does not wait. Raises when the line is lost."""
    raw = connection.raw.pgconn
    raw.consume_input()
    senders = []
    while (notice := raw.notifies()) is not None:
        senders.append(notice.be_pid)
    return senders
