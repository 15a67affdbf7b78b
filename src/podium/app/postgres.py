"""Store and engine on PostgreSQL, and the admission of a process: same repository, same key."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from podium.config.folders import note_server
from podium.core.errors import StoreUnusable, ToolMissing, UserMustAct
from podium.core.work import MACHINE

if TYPE_CHECKING:
    from podium.app.state_lock import StateLock
    from podium.config.folders import Folders
    from podium.engine import RunEngine
    from podium.git.git_command import Git
    from podium.ports import Clock, Ids, Store
    from podium.store.postgres_snapshot import PostgresDatabase
    from podium.store.postgres_store import PostgresStore


async def open_postgres_store(
    url: str,
    *,
    folders: Folders,
    lock: StateLock,
    clock: Clock,
    ids: Ids,
    redact: Callable[[str], str],
    receipt_key: Path | None,
) -> PostgresStore:
    """The record in this database. Queued runs are handed to DBOS with the transaction that stores them."""
    _must_be_installed()
    from podium.engine.distributed.workflows import enqueue
    from podium.store.postgres_store import PostgresStore

    await asyncio.to_thread(_make_dispatchable, url)
    state = folders.make_state()
    await asyncio.to_thread(lock.hold)
    note_server(folders, url)
    return await PostgresStore.open(
        url,
        folder=state,
        clock=clock,
        ids=ids,
        redact=redact,
        # Only now: the state folder has the id that the vault is found by.
        key_dir=folders.key_dir,
        receipt_key=receipt_key,
        queued=enqueue,
    )


def distributed_engine(
    store: Store,
    url: str,
    *,
    clock: Clock,
    ids: Ids,
    labels: tuple[str, ...],
    offers: tuple[str, ...],
) -> RunEngine:
    from podium import __version__
    from podium.engine.distributed import DISTRIBUTED, DbosEngine
    from podium.store.postgres_presence import PostgresPresence

    # Folders that a run of the foreground works in lie on the machine that it was started on.
    offers = (*offers, f"{MACHINE}{socket.gethostname()}")
    settings = DISTRIBUTED.model_copy(
        update={"labels": labels, "podium": __version__, "offers": offers}
    )
    return DbosEngine(
        store,
        url=url,
        clock=clock,
        ids=ids,
        presence=PostgresPresence(url),
        settings=settings,
    )


def dispatched_database(url: str) -> PostgresDatabase:
    """PostgreSQL database with DBOS's tables beside Podium's own: migrating it makes what dispatches the queues, too."""
    from podium.engine.distributed.database import migrate
    from podium.store.postgres_snapshot import PostgresDatabase

    class DispatchedDatabase(PostgresDatabase):
        def migrate(self) -> None:
            super().migrate()
            migrate(self.url)

    return DispatchedDatabase(url)


def _make_dispatchable(url: str) -> None:
    """Make DBOS's tables where there are none: whoever queues a run needs them, without loading DBOS."""
    from podium.store.postgres import prepare
    from podium.store.postgres_connection import connect

    prepare(url)
    connection = connect(url)
    try:
        row = connection.execute("SELECT to_regclass('dbos.workflow_input')", {}).fetchone()
    finally:
        connection.close()
    if row is None or row[0] is None:
        from podium.engine.distributed.database import migrate

        migrate(url)


def _must_be_installed() -> None:
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        raise UserMustAct(
            "PODIUM_DATABASE_URL is set, but PostgreSQL needs two more packages; "
            "install them with `pip install 'podium[distributed]'`"
        )


META_NAME = "repository"
"""The name in the table `meta` under which the project's first commits are kept."""

SHORT = 10
MAX_ROOTS = 50


async def admit(
    store: Store, url: str, *, git: Git, project: Path, receipt_key: Path | None
) -> None:
    """Make sure that this checkout and this key are those of the database's other hosts.

    The first one decides which these are. Raises a `StoreUnusable` that says what to do.
    """
    _refuse_missing_key(receipt_key)
    commits = await first_commits(git, project)
    if commits:
        _refuse_other(url, await asyncio.to_thread(_stored_commits, url), commits)
    await store.write(lambda tx: tx.must_be_able_to_seal())
    if commits:
        # Whoever was quicker than this process decided.
        _refuse_other(url, await asyncio.to_thread(_keep, url, commits), commits)


async def first_commits(git: Git, project: Path) -> tuple[str, ...]:
    """The commits that the checkout's history begins with, sorted; none where that cannot be known."""
    from podium.git.git_command import GitFailed

    cwd = str(project)
    try:
        # The history of a shallow clone begins wherever it was cut.
        if await git.text("rev-parse", "--is-shallow-repository", cwd=cwd) != "false":
            return ()
        roots = await git.text("rev-list", "--max-parents=0", "HEAD", cwd=cwd)
    except (GitFailed, ToolMissing):
        return ()
    return tuple(sorted(roots.split())[:MAX_ROOTS])


def _refuse_missing_key(key: Path | None) -> None:
    """A key that was named and then made by itself would be another one on every host."""
    if key is not None and not key.exists():
        raise StoreUnusable(
            str(key),
            "PODIUM_RECEIPT_KEY names a file that does not exist",
            "copy it from another host of this project; on the first host, create it with "
            "`head -c 32 /dev/urandom > FILE`",
        )


def _stored_commits(url: str) -> tuple[str, ...]:
    """The first commits of the repository that this database belongs to; none yet: empty."""
    from podium.store.postgres import connect, explained

    with explained(url):
        connection = connect(url)
        try:
            row = connection.execute(
                "SELECT value FROM meta WHERE name = :name", {"name": META_NAME}
            ).fetchone()
        finally:
            connection.close()
    return tuple(str(row[0]).split()) if row is not None else ()


def _keep(url: str, commits: tuple[str, ...]) -> tuple[str, ...]:
    """Keep these unless others were kept before, and give those that are."""
    from podium.store.postgres import connect, explained

    with explained(url):
        connection = connect(url)
        try:
            connection.execute(
                "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING",
                {"name": META_NAME, "value": " ".join(commits)},
            )
        finally:
            connection.close()
    return _stored_commits(url)


def _refuse_other(url: str, stored: tuple[str, ...], commits: tuple[str, ...]) -> None:
    # One in common is enough: branches that merged another history have several.
    if not stored or set(stored) & set(commits):
        return
    from podium.store.postgres import name_of

    raise StoreUnusable(
        name_of(url),
        f"it belongs to another project, whose repository starts with commit {stored[0][:SHORT]}; this "
        f"checkout starts with {commits[0][:SHORT]}",
        "each project needs its own database: set PODIUM_DATABASE_URL to that of this project, or work in a "
        "clone of that repository",
    )
