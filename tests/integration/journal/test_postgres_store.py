"""`PostgresStore` beyond the contract: other processes, a server that goes away, commits that are cut off."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from podium.core.decisions import Receipt, Tier
from podium.core.errors import BadInput, StoreAway, StoreUnusable
from podium.core.events import NoteTaken
from podium.core.work import Run, Signal
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import EventQuery, StoreView, Transaction
from podium.store import StoreJournal, verify
from podium.store.postgres import COMMIT_LOCK, connect
from podium.store.postgres_driver import MAX_MESSAGE, GatheringConnection
from podium.store.postgres_store import PostgresStore
from podium.testing import retry_until
from tests.postgres import PostgresServer
from tests.soaking import in_soak

RUN = "run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f"
ALL = EventQuery(limit=100_000)

WRITER = """
import asyncio, sys
from pathlib import Path
from podium.core.events import NoteTaken
from podium.store.postgres_store import PostgresStore
from podium.platform.system_clock import SystemClock, SystemIds

async def main(url, folder, name, count):
    store = await PostgresStore.open(url, folder=Path(folder), clock=SystemClock(), ids=SystemIds())
    for number in range(int(count)):
        await store.write(lambda tx: tx.append(f"run_{name}", NoteTaken(text=str(number))))
        print(number, flush=True)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


STOPPED = """
import asyncio, os, signal, sys, time
from pathlib import Path
from podium.core.events import NoteTaken
from podium.store.postgres_store import PostgresStore
from podium.platform.system_clock import SystemClock, SystemIds

tries = 0

def work(tx):
    global tries
    tries += 1
    tx.append("run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f", NoteTaken(text=f"try {tries}"))
    tx.run("run_none")  # what is read is waited for: the lock is held from here on
    if tries == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.5)  # the stop reaches each thread for itself, and this one perhaps last

async def main(url, folder):
    store = await PostgresStore.open(url, folder=Path(folder), clock=SystemClock(), ids=SystemIds())
    await store.write(work)
    print(tries)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""
"""A process that is stopped in the middle of its transaction."""


@asynccontextmanager
async def opened(url: str, folder: Path, **options: Any) -> AsyncIterator[PostgresStore]:
    made = await PostgresStore.open(
        url, folder=folder, clock=SystemClock(), ids=SystemIds(), **options
    )
    try:
        yield made
    finally:
        await made.close()


def writer(url: str, folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    """A process of its own that appends notes numbered from 0 and prints each number it was told is kept."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, url, str(folder), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )


def a_note(text: str = "x") -> NoteTaken:
    return NoteTaken(text=text)


def append(text: str, tx: Transaction) -> int:
    return tx.append(RUN, a_note(text))


async def texts(store: PostgresStore, run_id: str = RUN) -> list[str]:
    events = await store.read(lambda view: view.events(EventQuery(run_id=run_id, limit=100_000)))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [event.body.model_dump()["text"] for event in events]


def a_receipt() -> Receipt:
    now = datetime.now(UTC)
    return Receipt(
        run_id=RUN,
        number=0,
        call_key="k",
        tool="t",
        digest="d",
        status="completed",
        tier=Tier.T1,
        rule="r",
        requested_at=now,
        settled_at=now,
    )


async def test_records_are_dated_by_the_server(postgres_url: str, tmp_path: Path) -> None:
    class Wrong(SystemClock):
        def now(self) -> datetime:
            return datetime(1999, 1, 1, tzinfo=UTC)

    store = await PostgresStore.open(postgres_url, folder=tmp_path, clock=Wrong(), ids=SystemIds())
    await store.write(lambda tx: tx.append(RUN, a_note()))
    (event,) = await store.read(lambda view: view.events(ALL))
    assert abs(event.at - datetime.now(UTC)) < timedelta(minutes=5)
    seen = await store.read(lambda view: view.now())
    assert timedelta(0) <= seen - event.at < timedelta(minutes=5)
    await store.close()


async def test_a_follower_skips_no_event_of_processes_that_race(
    postgres_url: str, tmp_path: Path
) -> None:
    count = 60
    async with opened(postgres_url, tmp_path) as store:
        racing = [writer(postgres_url, tmp_path / name, name, count) for name in "abc"]
        seen: list[tuple[str, str]] = []
        positions: list[int] = []
        async with asyncio.timeout(120):
            async for event in StoreJournal(store).follow(EventQuery()):
                seen.append((event.run_id, event.body.model_dump()["text"]))
                positions.append(event.position)
                if len(seen) == 3 * count:
                    break
        for process in racing:
            assert process.communicate(timeout=120)[0].split() == [str(n) for n in range(count)]
        assert positions == sorted(set(positions))
        for name in "abc":
            assert [text for run, text in seen if run == f"run_{name}"] == [
                str(number) for number in range(count)
            ]
        stored = await store.read(lambda view: view.events(ALL))
        assert [event.position for event in stored] == positions


async def test_commit_of_another_process_is_announced_by_notify(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the look, only a notice can wake.
    monkeypatch.setattr("podium.store.postgres_presence.LOOK_SECONDS", 3600.0)
    async with opened(postgres_url, tmp_path) as here:
        async with asyncio.timeout(120):
            changes = here.changes()
            await anext(changes)
            await anext(changes)  # the line stands from here on
            other = writer(postgres_url, tmp_path / "other", "b", 1)
            await anext(changes)
            assert await texts(here, "run_b") == ["0"]
            await changes.aclose()  # type: ignore[attr-defined]  # an async generator
        assert other.communicate(timeout=120)[0] == "0\n"


@pytest.mark.soak
async def test_a_notice_that_never_came_is_made_up_for(postgres_url: str, tmp_path: Path) -> None:
    async with opened(postgres_url, tmp_path) as here:
        changes = here.changes()
        async with asyncio.timeout(120):
            await anext(changes)
            await anext(changes)
            line = connect(postgres_url)
            line.execute("INSERT INTO writers (id, last, at) VALUES ('silent', 1, 1)")
            line.close()
            assert await anext(changes, "ended") is None
        await changes.aclose()  # type: ignore[attr-defined]  # an async generator


@pytest.mark.soak
async def test_listeners_hear_again_after_their_line_was_cut(
    postgres_url: str, tmp_path: Path
) -> None:
    async with opened(postgres_url, tmp_path) as here:
        changes = here.changes()
        async with asyncio.timeout(120):
            await anext(changes)
            await anext(changes)
            end_sessions(postgres_url)
            await anext(changes)
            other = writer(postgres_url, tmp_path / "other", "b", 1)
            other.communicate(timeout=120)
            while await texts(here, "run_b") != ["0"]:
                await anext(changes)
        await changes.aclose()  # type: ignore[attr-defined]  # an async generator


def end_sessions(url: str) -> None:
    """Cut the line of every other session on this database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.mark.parametrize("mode", ["immediate", in_soak("fast")])
async def test_a_server_that_is_restarted_amid_writes_loses_and_doubles_nothing(
    own_postgres: PostgresServer, tmp_path: Path, mode: Any
) -> None:
    url = own_postgres.url(own_postgres.create_database())
    async with opened(url, tmp_path) as store:
        kept: list[str] = []
        stopped = False

        async def write_on(name: str) -> None:
            for number in range(100_000):
                if stopped:
                    return
                text = f"{name}{number}"
                await store.write(partial(append, text))
                kept.append(text)

        writing = [asyncio.create_task(write_on(name)) for name in "abcd"]
        for _ in range(2):
            before = len(kept)
            await retry_until(lambda before=before: len(kept) > before + 20)  # type: ignore[misc]
            await asyncio.to_thread(own_postgres.restart, mode)
        before = len(kept)
        await retry_until(lambda: len(kept) > before + 20)
        stopped = True
        await asyncio.gather(*writing)
        assert await texts(store) == kept
        assert await store.read(lambda view: view.last_position()) > 0


@pytest.mark.soak
async def test_a_server_that_stays_away_fails_works_with_an_error_that_passes(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    url = own_postgres.url(own_postgres.create_database())
    async with opened(url, tmp_path, patience_seconds=1.0) as store:
        await store.write(lambda tx: tx.append(RUN, a_note("before")))
        await asyncio.to_thread(own_postgres.stop)
        with pytest.raises(StoreAway, match="cannot be reached"):
            await store.write(lambda tx: tx.append(RUN, a_note("never")))
        with pytest.raises(StoreAway, match="cannot be reached"):
            await store.read(lambda view: view.last_position())
        await asyncio.to_thread(own_postgres.start)
        await store.write(lambda tx: tx.append(RUN, a_note("after")))
        assert await texts(store) == ["before", "after"]


@pytest.mark.soak
async def test_closing_does_not_wait_for_a_server_that_is_away(
    own_postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.store.writer.CLOSING_SECONDS", 0.1)
    url = own_postgres.url(own_postgres.create_database())
    store = await PostgresStore.open(
        url, folder=tmp_path, clock=SystemClock(), ids=SystemIds(), patience_seconds=3600
    )
    await store.write(lambda tx: tx.append(RUN, a_note()))
    await asyncio.to_thread(own_postgres.stop)
    store.note(RUN, a_note("last words"))
    async with asyncio.timeout(120):
        with pytest.raises(StoreAway):
            await store.close()
        await store.close()


async def test_a_line_lost_before_the_commit_has_the_work_done_again_once(
    postgres_url: str, tmp_path: Path
) -> None:
    async with opened(postgres_url, tmp_path) as store:
        tries = 0

        def work(tx: Transaction) -> int:
            nonlocal tries
            tries += 1
            seq = tx.append(RUN, a_note(f"try {tries}"))
            if tries == 1:
                end_sessions(postgres_url)
            return seq

        store.note(RUN, a_note("noted"))
        assert await store.write(work) == 2
        assert await texts(store) == ["noted", "try 2"]


@pytest.mark.soak
async def test_a_commit_whose_answer_was_lost_is_not_made_twice(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    name = own_postgres.create_database()
    url = own_postgres.url(name)
    async with opened(url, tmp_path) as store:
        await store.write(lambda tx: tx.append(RUN, a_note("before")))
        # A commit that waits for a standby that is not there is durable already, and not answered yet.
        own_postgres.administer("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        own_postgres.administer("SELECT pg_reload_conf()")
        tries: list[str] = []

        def work(tx: Transaction) -> None:
            tries.append("again")
            tx.append(RUN, a_note("once"))

        async def hangs() -> bool:
            rows = own_postgres.administer(
                "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )
            return bool(rows)

        store.note(RUN, a_note("noted"))
        writing = asyncio.create_task(store.write(work))
        await retry_until(hangs)
        own_postgres.administer("ALTER SYSTEM RESET synchronous_standby_names")
        own_postgres.administer(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        )
        own_postgres.administer("SELECT pg_reload_conf()")
        await writing
        assert tries == ["again"]
        assert await texts(store) == ["before", "noted", "once"]


async def test_a_commit_that_cannot_be_settled_says_that_it_is_in_doubt(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    url = own_postgres.url(own_postgres.create_database())
    async with opened(url, tmp_path, patience_seconds=0.5) as store:
        await store.write(lambda tx: tx.append(RUN, a_note("before")))
        own_postgres.administer("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        own_postgres.administer("SELECT pg_reload_conf()")
        writing = asyncio.create_task(store.write(lambda tx: tx.append(RUN, a_note("in doubt"))))

        async def hangs() -> bool:
            return bool(
                own_postgres.administer(
                    "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                )
            )

        await retry_until(hangs)
        await asyncio.to_thread(own_postgres.stop, "immediate")
        with pytest.raises(StoreAway, match="check before"):
            await writing
        await asyncio.to_thread(own_postgres.start)
        own_postgres.administer("ALTER SYSTEM RESET synchronous_standby_names")
        own_postgres.administer("SELECT pg_reload_conf()")
        assert await texts(store) == ["before", "in doubt"]


@pytest.mark.soak
async def test_a_stopped_process_holds_the_others_up_no_longer_than_its_session_may_idle(
    postgres_url: str, tmp_path: Path
) -> None:
    async with opened(postgres_url, tmp_path / "here") as store:
        other = subprocess.Popen(
            [sys.executable, "-c", STOPPED, postgres_url, str(tmp_path / "other")],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:

            def stopped() -> bool:
                state = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0]
                return state == "T"

            await retry_until(stopped)
            async with asyncio.timeout(120):
                await store.write(lambda tx: tx.append(RUN, a_note("goes on")))
            os.kill(other.pid, signal.SIGCONT)
            # It finds its line cut, and does its work again from there.
            assert (await asyncio.to_thread(other.communicate, timeout=120))[0] == "2\n"
        finally:
            other.kill()
            other.communicate()
        assert await texts(store) == ["goes on", "try 2"]


async def test_the_server_is_idle_whenever_a_work_thinks_so_that_its_limit_holds(
    postgres_url: str, tmp_path: Path
) -> None:
    watch = connect(postgres_url)
    states: list[Any] = []

    def look() -> None:
        states.append(
            watch.execute(
                "SELECT state FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
            ).fetchall()
        )

    def work(tx: Transaction) -> None:
        look()
        tx.append(RUN, a_note("written"))
        look()
        tx.last_seq(RUN)
        look()

    async with opened(postgres_url, tmp_path) as store:
        await store.write(work)
    watch.close()
    assert states == [[("idle in transaction",)]] * 3


async def test_works_wait_for_whoever_holds_the_lock_and_share_a_commit(
    postgres_url: str, tmp_path: Path
) -> None:
    async with opened(postgres_url, tmp_path) as store:
        await store.write(lambda tx: tx.append(RUN, a_note("first")))
        holder = connect(postgres_url)
        holder.execute("BEGIN")
        holder.execute("SELECT pg_advisory_xact_lock(:key)", {"key": COMMIT_LOCK}).fetchone()
        (before,) = holder.execute("SELECT sum(last) FROM writers").fetchone()
        works = [
            asyncio.create_task(store.write(partial(append, str(number)))) for number in range(20)
        ]
        await asyncio.sleep(0)
        assert not any(work.done() for work in works)
        holder.execute("COMMIT")
        await asyncio.gather(*works)
        (after,) = holder.execute("SELECT sum(last) FROM writers").fetchone()
        holder.close()
        assert after - before < 5
        assert len(await texts(store)) == 21


async def test_a_work_that_the_database_refuses_does_not_take_others_with_it(
    postgres_url: str, tmp_path: Path
) -> None:
    async with opened(postgres_url, tmp_path) as store:

        def doubled(tx: Transaction) -> None:
            tx.append(RUN, a_note("never"))
            for _ in range(2):
                tx.add_signal(
                    Signal(id="sig", run_id=RUN, name="n", payload=None, sent_at=datetime.now(UTC))
                )

        def named_with_nul(tx: Transaction) -> None:
            tx.append(RUN, a_note("never"))
            tx.drop_schedule("a\0b")

        outcomes = await asyncio.gather(
            store.write(lambda tx: tx.append(RUN, a_note("one"))),
            store.write(doubled),
            store.write(lambda tx: tx.append(RUN, a_note("two"))),
            store.write(named_with_nul),
            store.write(lambda tx: tx.append(RUN, a_note("three"))),
            return_exceptions=True,
        )
        assert isinstance(outcomes[1], StoreUnusable)
        assert isinstance(outcomes[3], BadInput)
        assert await texts(store) == ["one", "two", "three"]


async def test_a_work_that_passes_over_an_error_of_the_database_is_not_called_kept(
    postgres_url: str, tmp_path: Path
) -> None:
    async with opened(postgres_url, tmp_path) as store:

        def careless(tx: Transaction) -> None:
            tx.append(RUN, a_note("lost"))
            with suppress(psycopg.Error):
                tx._sql.execute("SELECT 1 / 0", {}).fetchone()  # type: ignore[attr-defined]

        with pytest.raises(StoreUnusable):
            await store.write(careless)
        assert await texts(store) == []


async def test_reading_changes_nothing_whatever_the_work_tries(
    postgres_url: str, tmp_path: Path
) -> None:
    async with opened(postgres_url, tmp_path) as store:

        def meddle(view: StoreView) -> None:
            view.ask("INSERT INTO schedules (name, body) VALUES ('x', '') RETURNING name")  # type: ignore[attr-defined]

        with pytest.raises(StoreUnusable, match="read-only"):
            await store.read(meddle)
        assert await store.read(lambda view: view.schedules()) == []


async def test_machine_with_another_key_may_not_seal_and_is_asked_to_copy_it(
    postgres_url: str, tmp_path: Path
) -> None:
    async with (
        opened(postgres_url, tmp_path / "one") as one,
        opened(postgres_url, tmp_path / "other") as other,
    ):
        await one.write(lambda tx: tx.add_receipt(a_receipt()))
        with pytest.raises(StoreUnusable, match="copy the key file"):
            await other.write(lambda tx: tx.add_receipt(a_receipt()))
        assert not (tmp_path / "other" / "vault" / "receipt.key").exists()
        (tmp_path / "other" / "vault").mkdir(parents=True)
        (tmp_path / "other" / "vault" / "receipt.key").write_bytes(b"k" * 32)
        with pytest.raises(StoreUnusable, match="another key"):
            await other.write(lambda tx: tx.must_be_able_to_seal())
        key = (tmp_path / "one" / "vault" / "receipt.key").read_bytes()
        (tmp_path / "other" / "vault" / "receipt.key").write_bytes(key)
        await other.write(lambda tx: tx.add_receipt(a_receipt()))
        receipts = await one.read(lambda view: view.receipts(RUN))
        assert [receipt.number for receipt in receipts] == [1, 2]
        assert verify({RUN: receipts}, one.sealer, one.anchors) == []
        assert key.hex() not in str(await one.read(lambda view: view.ask("SELECT * FROM meta")))  # type: ignore[attr-defined]


async def test_a_key_that_was_named_is_used(postgres_url: str, tmp_path: Path) -> None:
    named = tmp_path / "shared" / "the.key"
    async with opened(postgres_url, tmp_path / "one", receipt_key=named) as one:
        await one.write(lambda tx: tx.add_receipt(a_receipt()))
    assert named.exists()
    async with opened(postgres_url, tmp_path / "other", receipt_key=named) as other:
        await other.write(lambda tx: tx.add_receipt(a_receipt()))


async def test_a_taken_back_first_receipt_does_not_bind_the_key(
    postgres_url: str, tmp_path: Path
) -> None:
    class Changed(Exception):
        """Somebody thought better of it."""

    def work(tx: Transaction) -> None:
        tx.add_receipt(a_receipt())
        raise Changed

    async with (
        opened(postgres_url, tmp_path / "one") as one,
        opened(postgres_url, tmp_path / "other") as other,
    ):
        with pytest.raises(Changed):
            await one.write(work)
        await other.write(lambda tx: tx.add_receipt(a_receipt()))
        with pytest.raises(StoreUnusable, match="another key"):
            await one.write(lambda tx: tx.add_receipt(a_receipt()))


async def test_the_trace_of_a_run_lies_in_this_machines_folder(
    postgres_url: str, tmp_path: Path
) -> None:
    async with opened(postgres_url, tmp_path) as store:
        await store.write(lambda tx: tx.append(RUN, a_note("traced")))
    assert '"traced"' in (tmp_path / "runs" / RUN / "execution_trace.jsonl").read_text()
    assert store.problems == ()


async def test_queued_run_is_announced_within_its_transaction(
    postgres_url: str, tmp_path: Path
) -> None:
    messages: list[str] = []

    def queued(sql: Any, run: Run, now: datetime) -> None:
        messages.append(run.id)
        sql.execute("INSERT INTO schedules (name, body) VALUES (:id, '')", {"id": run.id})

    now = datetime.now(UTC)
    waiting = Run(id=RUN, flow="f", flow_version=1, queue="q", created_at=now)
    free = waiting.model_copy(update={"id": "run_b", "queue": None})

    def work(tx: Transaction) -> None:
        tx.add_run(waiting)
        tx.add_run(free)

    async with opened(postgres_url, tmp_path, queued=queued) as store:
        await store.write(work)
        rows = await store.read(lambda view: view.ask("SELECT name FROM schedules"))  # type: ignore[attr-defined]
    assert messages == [RUN]
    assert rows == [(RUN,)]


async def test_a_closed_store_leaves_no_session_behind(postgres_url: str, tmp_path: Path) -> None:
    async with opened(postgres_url, tmp_path) as store:
        changes = store.changes()
        await anext(changes)
        await store.write(lambda tx: tx.append(RUN, a_note()))
        await store.read(lambda view: view.last_position())
        await changes.aclose()  # type: ignore[attr-defined]  # an async generator

    watch = connect(postgres_url)

    def alone() -> bool:
        row = watch.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        ).fetchone()
        return bool(row[0] == 1)

    await retry_until(alone)
    assert watch.execute("SELECT count(*) FROM writers").fetchone() == (0,)
    watch.close()


async def test_what_one_work_asks_too_much_of_the_server_costs_no_other(
    postgres_url: str, tmp_path: Path
) -> None:
    # Random, or the server would compress it until it fits.
    key = secrets.token_hex(9000)
    asked_too_much = Run(id=RUN, flow="f", queue="q", dedup_key=key, created_at=datetime.now(UTC))
    async with opened(postgres_url, tmp_path) as store:
        works: list[Callable[[Transaction], object]] = [partial(append, str(n)) for n in range(20)]
        works.insert(5, lambda tx: tx.save_run(asked_too_much))
        outcomes = await asyncio.gather(*map(store.write, works), return_exceptions=True)
        (failed,) = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert isinstance(failed, StoreUnusable)
        assert await texts(store) == [str(n) for n in range(20)]


def test_what_is_gathered_is_sent_before_it_is_too_much_for_one_message(postgres_url: str) -> None:
    line = GatheringConnection(connect(postgres_url))
    try:
        large = line.control("SELECT length(:text)", text="x" * MAX_MESSAGE)
        little = line.control("SELECT 1")
        assert (large.done, little.done) == ("SELECT 1", "")
        assert large.fetchone() == (MAX_MESSAGE,)
        assert little.fetchone() == (1,)
    finally:
        line.close()
