"""Writing on SQLite: whose turn it is, and whether the file is still the one that was opened."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from podium.domain.errors import StoreUnusable
from podium.journal.reserve import Reserve
from podium.journal.sqlite import BUSY_SECONDS, connect, explain, is_full
from podium.journal.transaction import SqlTransaction

LOOK_SECONDS = 0.05
"""How long it is taken for granted that the file is still where it was."""


class SqliteDriver:
    """The write connection to a file. `begin` makes the transaction's object on an open transaction."""

    patience_seconds = 0.0

    def __init__(
        self,
        path: Path,
        begin: Callable[[sqlite3.Connection], SqlTransaction],
        reserve: Reserve,
    ) -> None:
        self._reserve = reserve
        self.name = str(path)
        self._path = path
        self._begin = begin
        self._connection = connect(path)
        # Waiting for other processes is done here and not by SQLite: it sleeps for too long at a time.
        self._connection.execute("PRAGMA busy_timeout=0")
        self._looked = 0.0
        self._inode = path.stat().st_ino

    def begin_now(self) -> SqlTransaction | None:
        return self._begin(self._connection) if self._begun() else None

    def begin(self, runs: Collection[str]) -> SqlTransaction:
        """Wait for other processes, in short naps of uneven length so that none is left behind."""
        deadline = time.monotonic() + BUSY_SECONDS
        nap = 0.0005
        while not self._begun():
            if time.monotonic() > deadline:
                self._connection.execute("BEGIN IMMEDIATE")
                break
            time.sleep(nap * random.uniform(0.5, 1.5))  # noqa: S311 - no secret depends on it
            nap = min(nap * 1.5, 0.02)
        return self._begin(self._connection)

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def take_back(self) -> None:
        # A file that is gone or broken says so to whoever waits, by the error that led here.
        with suppress(sqlite3.Error):
            self._connection.rollback()

    def set_mark(self) -> None:
        self._connection.execute("SAVEPOINT work")

    def back_to_mark(self) -> None:
        self._connection.execute("ROLLBACK TO work")

    def drop_mark(self) -> None:
        self._connection.execute("RELEASE work")

    def explained(self, error: BaseException) -> BaseException:
        return explain(error, self._path) if isinstance(error, sqlite3.Error) else error

    def is_own(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.Error)

    def blames_one_work(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError | sqlite3.DataError)

    def may_pass(self, error: BaseException) -> bool:
        return False

    def made_room(self, error: BaseException) -> bool:
        if not is_full(error, self._path) or not self._reserve.release():
            return False
        # What is copied out of the log makes its own space usable again. It waits for nobody.
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return True

    def close(self) -> None:
        self._connection.close()

    def _begun(self) -> bool:
        """Whether a transaction could be begun right now."""
        self._must_be_the_same_file()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _must_be_the_same_file(self) -> None:
        """What is committed to a file that was removed or replaced is lost when it is closed.

        Looking costs a tenth of a commit, so that within a burst it is not done each time.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        try:
            found = self._path.stat().st_ino
        except OSError:
            found = None
        self._looked = now if found == self._inode else 0.0
        if found != self._inode:
            raise StoreUnusable(
                str(self._path),
                "the file was removed or replaced while it was in use",
                "put it back, or end all processes that use it and start again",
            )
