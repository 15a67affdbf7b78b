"""The record and the engine on PostgreSQL, for work on many machines."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from podium.domain.errors import UserMustAct
from podium.domain.work import MACHINE
from podium.wiring.database_mark import leave_mark

if TYPE_CHECKING:
    from podium.engine import RunEngine
    from podium.journal.postgres_store import PostgresStore
    from podium.ports import Store
    from podium.wiring.podium import Podium


async def open_postgres_store(podium: Podium, url: str) -> PostgresStore:
    """The record in this database. Queued runs are handed to DBOS with the transaction that stores them."""
    _must_be_installed()
    from podium.engine.distributed.enqueueing import enqueue
    from podium.journal.postgres_store import PostgresStore

    await asyncio.to_thread(_make_dispatchable, url)
    state = podium.folders.make_state()
    await asyncio.to_thread(podium.state_lock.hold)
    leave_mark(podium.folders, url)
    return await PostgresStore.open(
        url,
        folder=state,
        clock=podium.clock,
        ids=podium.ids,
        redact=lambda text: podium.redactor.json_text(text),
        vault=podium.vault,
        receipt_key=podium.named_receipt_key,
        queued=enqueue,
    )


def distributed_engine(podium: Podium, store: Store, url: str) -> RunEngine:
    from podium import __version__
    from podium.engine.distributed import DISTRIBUTED, DbosEngine
    from podium.journal.postgres_presence import PostgresPresence

    # Folders that a run of the foreground works in lie on the machine that it was started on.
    offers = (*podium.offers, f"{MACHINE}{socket.gethostname()}")
    settings = DISTRIBUTED.model_copy(
        update={"labels": podium.labels, "podium": __version__, "offers": offers}
    )
    return DbosEngine(
        store,
        url=url,
        clock=podium.clock,
        ids=podium.ids,
        presence=PostgresPresence(url),
        settings=settings,
    )


def _make_dispatchable(url: str) -> None:
    """Make DBOS's tables where there are none: whoever queues a run needs them, without loading DBOS."""
    from podium.journal.postgres import prepare
    from podium.journal.postgres_connection import connect

    prepare(url)
    connection = connect(url)
    try:
        found = connection.execute("SELECT to_regclass('dbos.workflow_input')", {}).fetchone()
    finally:
        connection.close()
    if found is None or found[0] is None:
        from podium.engine.distributed.database import migrate

        migrate(url)


def _must_be_installed() -> None:
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        raise UserMustAct(
            "PODIUM_DATABASE_URL is set, and work on PostgreSQL needs two packages more; "
            "install them with `pip install 'podium[distributed]'`"
        )
