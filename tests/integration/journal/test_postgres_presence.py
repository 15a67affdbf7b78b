"""Marks on PostgreSQL: they stand as long as their process does, and come back when only the line was lost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from podium.core.errors import LockHeld, StoreAway
from podium.core.work import WorkerHeartbeat
from podium.store.postgres_presence import LOST_LINE_SECONDS, PostgresPresence
from podium.store.postgres_store import PostgresStore
from podium.testing import FixedClock, MemoryStore, SteadyIds, retry_until

HELD = """
import asyncio, sys
from podium.store.postgres_presence import PostgresPresence

async def main(url):
    await PostgresPresence(url).enter("worker_a")
    print("in", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
async def store(postgres_url: str, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    made = await PostgresStore.open(
        postgres_url, folder=tmp_path, clock=FixedClock(), ids=SteadyIds(), database_time=False
    )
    yield made
    await made.close()


def presence(url: str) -> PostgresPresence:
    # The server of the tests was started a moment ago; let its marks count all the same.
    return PostgresPresence(url, young_seconds=0.0)


def a_heartbeat(
    name: str = "worker_a", host: str = "elsewhere", age: float = 0.0
) -> WorkerHeartbeat:
    now = FixedClock().now()
    return WorkerHeartbeat(
        id=name,
        host=host,
        pid=os.getpid(),
        started_at=now,
        beat_at=now - timedelta(seconds=age),
    )


async def present(store: PostgresStore, look: PostgresPresence, *names: str) -> set[str]:
    return await store.read(lambda view: look.present(view, [a_heartbeat(name) for name in names]))


async def gone(
    store: PostgresStore, look: PostgresPresence, heartbeat: WorkerHeartbeat | None
) -> bool:
    return await store.read(lambda view: look.is_gone(view, heartbeat))


async def test_mark_remains_from_entering_to_leaving(
    store: PostgresStore, postgres_url: str
) -> None:
    one, look = presence(postgres_url), presence(postgres_url)
    assert await present(store, look) == set()
    assert await present(store, look, "worker_a", "worker_b") == set()
    await one.enter("worker_a")
    assert await present(store, look, "worker_a", "worker_b") == {"worker_a"}
    await one.leave()
    await one.leave()
    assert await present(store, look, "worker_a", "worker_b") == set()


async def test_missing_marks_on_a_server_just_started_mean_nothing(
    store: PostgresStore, postgres_url: str
) -> None:
    look = PostgresPresence(postgres_url, young_seconds=1e9)
    assert await present(store, look, "worker_a") == {"worker_a"}


async def test_a_mark_is_seen_within_a_transaction_too(
    store: PostgresStore, postgres_url: str
) -> None:
    one = presence(postgres_url)
    await one.enter("worker_a")
    assert await store.write(lambda tx: one.present(tx, [a_heartbeat()])) == {"worker_a"}
    await one.leave()


async def test_no_two_processes_hold_one_mark(postgres_url: str) -> None:
    one, other = presence(postgres_url), presence(postgres_url)
    await one.enter("worker_a")
    with pytest.raises(LockHeld, match="worker_a"):
        await other.enter("worker_a")
    await one.leave()
    await other.enter("worker_a")
    await other.leave()


async def test_the_mark_of_a_killed_process_is_gone_at_once(
    store: PostgresStore, postgres_url: str
) -> None:
    look = presence(postgres_url)
    holder = subprocess.Popen(
        [sys.executable, "-c", HELD, postgres_url], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "in\n"
    heartbeat = a_heartbeat(host=socket.gethostname()).model_copy(update={"pid": holder.pid})
    assert await present(store, look, "worker_a") == {"worker_a"}
    assert not await gone(store, look, heartbeat)
    holder.kill()
    holder.communicate()

    async def nobody() -> bool:
        return await present(store, look, "worker_a") == set()

    await retry_until(nobody)
    assert await gone(store, look, heartbeat)


async def test_a_mark_comes_back_by_itself_when_only_the_line_was_lost(
    store: PostgresStore, postgres_url: str
) -> None:
    one = presence(postgres_url)
    await one.enter("worker_a")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks "
            "WHERE locktype = 'advisory' AND objsubid = 1 AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        ).fetchall()
    assert ended

    async def back() -> bool:
        return await present(store, one, "worker_a") == {"worker_a"}

    await retry_until(back)
    await one.leave()
    assert await present(store, one, "worker_a") == set()


@pytest.mark.parametrize(
    ("age", "is_gone"),
    [(0.0, False), (LOST_LINE_SECONDS - 1, False), (LOST_LINE_SECONDS + 1, True)],
)
async def test_a_worker_that_may_only_have_lost_its_line_is_given_time(
    store: PostgresStore, postgres_url: str, age: float, is_gone: bool
) -> None:
    look = presence(postgres_url)
    assert await gone(store, look, a_heartbeat(age=age)) is is_gone
    # Here too, as long as its process is seen to run.
    here = a_heartbeat(age=age, host=socket.gethostname())
    assert await gone(store, look, here) is is_gone


async def test_worker_that_left_properly_is_gone(store: PostgresStore, postgres_url: str) -> None:
    assert await gone(store, presence(postgres_url), None)


async def test_absent_server_is_reported_when_entering() -> None:
    with pytest.raises(StoreAway):
        await PostgresPresence("postgresql://podium@127.0.0.1:1/podium").enter("worker_a")


async def test_a_view_of_another_database_is_refused() -> None:
    look = PostgresPresence("postgresql://podium@127.0.0.1:1/podium")
    store = MemoryStore(FixedClock())
    with pytest.raises(TypeError, match="PostgreSQL"):
        await store.read(lambda view: look.present(view, [a_heartbeat()]))
    await store.close()
