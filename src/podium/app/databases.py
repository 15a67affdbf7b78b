"""Databases of `podium db`: check, copy, prove, and prune runs that ended long ago."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.errors import BadInput
from podium.core.model import FrozenModel
from podium.ports import Store, Transaction

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.store.database_check import DatabaseCheck
    from podium.store.database_copy import DatabaseCopy, Enqueue, ProgressCallback, ReceiptKeys
    from podium.store.database_snapshot import WholeDatabase


class Databases:
    """Databases by URL or path, as this project sees them. All methods block."""

    def __init__(self, podium: Podium) -> None:
        self._podium = podium

    @property
    def in_use(self) -> str:
        """The project's own."""
        return self._podium.database_url or str(self._podium.database)

    @property
    def in_use_name(self) -> str:
        """The project's own as it may be shown, known without loading what dispatches queues."""
        if not self._podium.database_url:
            return self.in_use
        from podium.store.postgres_connection import name_of

        return name_of(self._podium.database_url)

    def display_name(self, name: str) -> str:
        """A database as it may be shown: without a password."""
        return self._whole(name).name

    def versions(self, name: str) -> tuple[int, int]:
        """The version of its schema (0: none yet), and this Podium's. Changes nothing."""
        from podium.store.sqlite import SCHEMA_VERSION

        return self._whole(name).version(), SCHEMA_VERSION

    def migrate(self, name: str) -> None:
        """Bring it to this Podium's schema, on a server with what dispatches its queues."""
        self._make_state_folder(name)
        self._whole(name).migrate()

    def check(self, name: str, report: ProgressCallback) -> DatabaseCheck:
        from podium.store.database_check import check_database

        proof = self._proof(alone=not _is_server(name))
        return check_database(self._whole(name), proof, progress=report)

    def copy(self, source: str, target: str, report: ProgressCallback) -> DatabaseCopy:
        """Copy a whole project. Its queued runs are handed to the target's queues."""
        from podium.store.database_copy import copy_database

        origin, destination = self._whole(source), self._whole(target)
        # First: the heads of the receipts are found by what is made there.
        self._make_state_folder(target)
        done = copy_database(
            origin,
            destination,
            progress=report,
            enqueue=_queues_of(target),
            proof=self._proof(alone=not _is_server(source) and not _is_server(target)),
            anchor=not _is_server(target),
        )
        self._note_where_it_is(source, target)
        return done

    def _note_where_it_is(self, source: str, target: str) -> None:
        from podium.config.folders import forget_server, note_server

        if _is_server(target) and self._is_own_file(source):
            note_server(self._podium.folders, target)
        elif self._is_own_file(target):
            forget_server(self._podium.folders)

    def _whole(self, name: str) -> WholeDatabase:
        from podium.store.database_copy import database_named

        if not _is_server(name):
            return database_named(name)
        from podium.app.postgres import dispatched_database

        return dispatched_database(name)

    def _proof(self, *, alone: bool) -> ReceiptKeys | None:
        from podium.store.database_copy import proof_with

        return proof_with(self._podium.receipt_key, self._podium.key_dir, alone=alone)

    def _make_state_folder(self, name: str) -> None:
        if self._is_own_file(name):
            self._podium.folders.make_state()

    def _is_own_file(self, name: str) -> bool:
        own = self._podium.database.resolve()
        return not _is_server(name) and Path(self._whole(name).name).resolve() == own


def _queues_of(target: str) -> Enqueue | None:
    """Function that queues runs on the target. None for a file: workers poll it."""
    if not _is_server(target):
        return None
    from podium.engine.distributed.workflows import enqueue

    return enqueue


def _is_server(name: str) -> bool:
    return name.startswith(("postgresql://", "postgres://"))


BATCH_RUNS = 500
"""Runs of one transaction: everybody else's writes wait for it, a twentieth of a second or so."""

PAUSE_SECONDS = 0.02
"""Between two of them, for those who wait: SQLite keeps no order among them."""

MAX_COUNTED = 1_000_000
"""Runs that are counted when nothing is to be removed."""


class Pruned(FrozenModel):
    """Number of runs that were deleted, or would be."""

    before: datetime
    runs: int
    dry_run: bool


async def prune(
    store: Store,
    older_than: timedelta,
    *,
    dry_run: bool = False,
    report: Callable[[int], None] = lambda runs: None,
) -> Pruned:
    """Forget runs that ended longer ago than this, with their events, steps, signals and calls.

    Their receipts and approvals stay. Whatever stops it, what is forgotten is so whole runs at a time.
    `tell` hears how many went so far.
    """
    now = await store.read(lambda view: view.now())
    try:
        before = now - older_than
    except OverflowError:
        raise BadInput(
            f"{older_than.days} days is longer than any date allows; use fewer"
        ) from None
    if dry_run:
        ids = await store.read(lambda view: view.ended_before(before, MAX_COUNTED))
        return Pruned(before=before, runs=len(ids), dry_run=True)
    runs = 0
    while gone := await store.write(lambda tx: _forget_some(tx, before)):
        runs += gone
        report(runs)
        await asyncio.sleep(PAUSE_SECONDS)
    return Pruned(before=before, runs=runs, dry_run=False)


def _forget_some(tx: Transaction, before: datetime) -> int:
    # Found and forgotten in one transaction: a run that somebody retries meanwhile is no longer found.
    ids = tx.ended_before(before, BATCH_RUNS)
    tx.drop_runs(ids)
    return len(ids)
