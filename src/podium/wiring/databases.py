"""The databases that `podium db` is asked about: the one in use, and any that is named."""

from __future__ import annotations

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
        proof = self._proof(alone=not _is_server(source) and not _is_server(target))
        self._make_room(target)
        return copy_database(found, wanted, tell=tell, enqueue=_queues_of(target), proof=proof)

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
        if name == str(self._podium.database):
            self._podium.folders.make_state()


def _queues_of(target: str) -> Enqueue | None:
    """Who must be told of queued runs there. A file needs nobody: workers look into it."""
    if not _is_server(target):
        return None
    from podium.engine.distributed.enqueueing import enqueue

    return enqueue


def _is_server(name: str) -> bool:
    return name.startswith(("postgresql://", "postgres://"))
