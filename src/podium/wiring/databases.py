"""The databases that `podium db` is asked about: the one in use, and any that is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.journal.checking import Checked
    from podium.journal.copying import Copied, Enqueue, Tell
    from podium.journal.proving import Proof
    from podium.journal.whole import WholeDatabase
    from podium.wiring.podium import Podium


class Databases:
    """Databases by URL or path, as this project sees them. All methods block."""

    def __init__(self, podium: Podium) -> None:
        self._podium = podium

    @property
    def in_use(self) -> str:
        """The project's own."""
        return self._podium.database_url or str(self._podium.database)

    @property
    def in_use_shown(self) -> str:
        """The project's own as it may be shown, known without loading what dispatches queues."""
        if not self._podium.database_url:
            return self.in_use
        from podium.journal.postgres_connection import name_of

        return name_of(self._podium.database_url)

    def shown(self, name: str) -> str:
        """A database as it may be shown: without a password."""
        return self._whole(name).name

    def versions(self, name: str) -> tuple[int, int]:
        """The version of its schema (0: none yet), and this Podium's. Changes nothing."""
        from podium.journal.sqlite import SCHEMA_VERSION

        return self._whole(name).version(), SCHEMA_VERSION

    def migrate(self, name: str) -> None:
        """Bring it to this Podium's schema, on a server with what dispatches its queues."""
        self._make_room(name)
        self._whole(name).migrate()

    def check(self, name: str, tell: Tell) -> Checked:
        from podium.journal.checking import check_database

        proof = self._proof(alone=not _is_server(name))
        return check_database(self._whole(name), proof, tell=tell)

    def copy(self, source: str, target: str, tell: Tell) -> Copied:
        """Copy a whole project. Its queued runs are handed to the target's queues."""
        from podium.journal.copying import copy_database

        found, wanted = self._whole(source), self._whole(target)
        # First: the heads of the receipts are found by what is made there.
        self._make_room(target)
        done = copy_database(
            found,
            wanted,
            tell=tell,
            enqueue=_queues_of(target),
            proof=self._proof(alone=not _is_server(source) and not _is_server(target)),
            anchor=not _is_server(target),
        )
        self._note_where_it_is(source, target)
        return done

    def _note_where_it_is(self, source: str, target: str) -> None:
        from podium.wiring.database_mark import leave_mark, remove_mark

        if _is_server(target) and self._is_own_file(source):
            leave_mark(self._podium.folders, target)
        elif self._is_own_file(target):
            remove_mark(self._podium.folders)

    def _whole(self, name: str) -> WholeDatabase:
        from podium.journal.whole import database_named

        if not _is_server(name):
            return database_named(name)
        from podium.wiring.dispatched import DispatchedDatabase

        return DispatchedDatabase(name)

    def _proof(self, *, alone: bool) -> Proof | None:
        from podium.journal.proving import proof_with

        return proof_with(self._podium.receipt_key, self._podium.vault, alone=alone)

    def _make_room(self, name: str) -> None:
        if self._is_own_file(name):
            self._podium.folders.make_state()

    def _is_own_file(self, name: str) -> bool:
        own = self._podium.database.resolve()
        return not _is_server(name) and Path(self._whole(name).name).resolve() == own


def _queues_of(target: str) -> Enqueue | None:
    """Who must be told of queued runs there. A file needs nobody: workers look into it."""
    if not _is_server(target):
        return None
    from podium.engine.distributed.enqueueing import enqueue

    return enqueue


def _is_server(name: str) -> bool:
    return name.startswith(("postgresql://", "postgres://"))
