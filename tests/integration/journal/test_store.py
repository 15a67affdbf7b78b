"""`SqlStore` beyond the contract: durability, other processes, secrets, faults of its files."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from podium.core.decisions import Receipt, Tier
from podium.core.errors import BadInput, StoreFull, StoreUnusable
from podium.core.events import NoteTaken
from podium.core.work import Run, Signal, StepRecord, StepStatus
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import EventQuery, Transaction
from podium.store import Redactor, SqlStore, StoreJournal, verify
from podium.store.sqlite_store import SqliteDriver
from podium.testing import FixedClock, SteadyIds, retry_until

RUN = "run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f"
SECRET = "hunter2-and-more"


async def opened(folder: Path, **options: object) -> SqlStore:
    redactor = Redactor({"PASSWORD": SECRET})
    return await SqlStore.open(
        folder / "state",
        clock=SystemClock(),
        ids=SystemIds(),
        redact=redactor.json_text,
        key_dir=folder / "vault",
    )


def a_receipt(number: int = 0) -> Receipt:
    now = FixedClock().now()
    return Receipt(
        run_id=RUN,
        number=0,
        call_key=f"{RUN}:s:{number}",
        tool="send",
        digest="sha256:0",
        status="completed",
        tier=Tier.T1,
        rule="r",
        requested_at=now,
        settled_at=now,
    )


async def test_store_without_a_given_redaction_hides_what_the_environment_held_when_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_PASSWORD", SECRET)
    store = await SqlStore.open(tmp_path / "state", clock=SystemClock(), ids=SystemIds())
    monkeypatch.delenv("SOME_PASSWORD")
    journal = StoreJournal(store)
    await journal.append(RUN, NoteTaken(text=f"it is {SECRET}"))
    [event] = await journal.read(EventQuery(run_id=RUN))
    await store.close()
    assert isinstance(event.body, NoteTaken)
    assert event.body.text == "it is [redacted:SOME_PASSWORD]"


async def test_nothing_is_stored_where_redaction_cannot_be_prepared(tmp_path: Path) -> None:
    def redact(text: str) -> str:
        raise BadInput("the pattern is broken")

    store = await SqlStore.open(
        tmp_path / "state", clock=SystemClock(), ids=SystemIds(), redact=redact
    )
    journal = StoreJournal(store)
    with pytest.raises(BadInput, match="the pattern is broken"):
        await journal.append(RUN, NoteTaken(text="a note"))
    assert await journal.read(EventQuery(run_id=RUN)) == []
    await store.close()


def test_what_was_appended_before_a_kill_is_there_after_it(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", _APPEND_FOR_EVER, str(tmp_path), RUN],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    promised = [int(writer.stdout.readline()) for _ in range(50)]
    os.kill(writer.pid, signal.SIGKILL)
    promised += [int(line) for line in writer.stdout.read().split()]
    writer.wait()
    writer.stdout.close()
    connection = sqlite3.connect(tmp_path / "state" / "podium.db")
    kept = [row[0] for row in connection.execute("SELECT seq FROM events ORDER BY position")]
    connection.close()
    assert kept[: len(promised)] == promised
    assert kept == list(range(1, len(kept) + 1))


async def test_events_of_another_process_are_followed_live(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    seen: list[str] = []

    async def follow() -> None:
        async for event in StoreJournal(store).follow(EventQuery()):
            assert isinstance(event.body, NoteTaken)
            seen.append(event.body.text)

    following = asyncio.create_task(follow())
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _APPEND_TWENTY, str(tmp_path), RUN
    )
    assert await other.wait() == 0
    await retry_until(lambda: len(seen) == 20)
    following.cancel()
    assert seen == [f"note {number}" for number in range(20)]
    await store.close()


async def test_commit_whose_bell_was_not_rung_is_noticed_by_the_next_look(tmp_path: Path) -> None:
    listener, silent = await opened(tmp_path), await opened(tmp_path)
    # As a process would be that is killed between its commit and the bell.
    silent._doorbell.ring = lambda: None  # type: ignore[method-assign]
    output = asyncio.Event()

    async def listen() -> None:
        turns = 0
        async for _ in listener.changes():
            turns += 1
            if turns == 2:
                output.set()

    listening = asyncio.create_task(listen())
    await retry_until(lambda: listener._waiters)
    await silent.write(lambda tx: tx.append(RUN, NoteTaken(text="quiet")))
    async with asyncio.timeout(120):
        await output.wait()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await listener.close()
    await silent.close()


async def test_secret_is_in_no_byte_of_any_file_whatever_record_brought_it(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    now = SystemClock().now()

    def leak(tx: Transaction) -> None:
        tx.append(RUN, NoteTaken(text=f"the password is {SECRET}"))
        tx.add_run(Run(id=RUN, flow="f", task=SECRET, input={SECRET: [SECRET]}, created_at=now))
        tx.save_step(
            StepRecord(
                run_id=RUN, key="s", status=StepStatus.COMPLETED, output=SECRET, started_at=now
            )
        )
        tx.add_signal(Signal(id="sig_1", run_id=RUN, name="n", payload=SECRET, sent_at=now))
        tx.add_receipt(a_receipt().model_copy(update={"error": SECRET}))

    await store.write(leak)
    await store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


async def test_a_step_is_given_back_as_it_was_kept(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    now = SystemClock().now()
    step = StepRecord(
        run_id=RUN, key="s", status=StepStatus.COMPLETED, output={"x": SECRET}, started_at=now
    )
    kept = await store.write(lambda tx: tx.save_step(step))
    assert kept.output == {"x": "[redacted:PASSWORD]"}
    assert await store.read(lambda view: view.step(RUN, "s")) == kept
    await store.close()


async def test_receipts_are_chained_anchored_and_verified(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    for draft in (a_receipt(0), a_receipt(1), a_receipt(2)):
        await store.write(partial(_add_receipt, draft))
    receipts = await store.read(lambda view: view.receipts(RUN))
    assert [receipt.number for receipt in receipts] == [1, 2, 3]
    assert verify({RUN: receipts}, store.sealer, store.anchors) == []
    [cut] = verify({RUN: receipts[:2]}, store.sealer, store.anchors)
    assert cut.kind == "cut_off"
    await store.close()


async def test_works_that_share_a_commit_fail_apart(tmp_path: Path) -> None:
    store = await opened(tmp_path)

    def fail(tx: Transaction) -> None:
        tx.append(RUN, NoteTaken(text="never"))
        tx.add_receipt(a_receipt())
        raise ValueError("no")

    results = await asyncio.gather(
        *(
            store.write(fail if number % 3 == 0 else lambda tx: tx.append(RUN, NoteTaken(text="x")))
            for number in range(60)
        ),
        return_exceptions=True,
    )
    failed = [result for result in results if isinstance(result, ValueError)]
    assert len(failed) == 20
    assert sorted(result for result in results if isinstance(result, int)) == list(range(1, 41))
    assert await store.read(lambda view: view.receipts()) == []
    await store.close()


async def test_a_full_disk_fails_the_write_and_the_store_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    store = await opened(tmp_path)
    await store.write(lambda tx: tx.append(RUN, NoteTaken(text="before")))
    driver = store._writer._driver
    assert isinstance(driver, SqliteDriver)
    connection = driver._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreFull, match="free space in"):
        await store.write(lambda tx: tx.append(RUN, NoteTaken(text="x" * 100_000)))
    connection.execute("PRAGMA max_page_count=1000000")
    assert await store.write(lambda tx: tx.append(RUN, NoteTaken(text="after"))) == 2
    await store.close()


async def test_a_trace_that_cannot_be_written_harms_nothing_and_is_reported_until_it_can(
    tmp_path: Path,
) -> None:
    store = await opened(tmp_path)
    (tmp_path / "state" / "runs").write_text("a file where the folder should be")
    assert await store.write(lambda tx: tx.append(RUN, NoteTaken(text="x"))) == 1
    await retry_until(lambda: store.problems)
    assert "trace" in store.problems[0]
    (tmp_path / "state" / "runs").unlink()
    await store.write(lambda tx: tx.append(RUN, NoteTaken(text="y")))
    await store.close()
    assert store.problems == ()
    trace = tmp_path / "state" / "runs" / RUN / "execution_trace.jsonl"
    assert len(trace.read_text().splitlines()) == 2


async def test_positions_rise_even_when_the_clock_goes_back(tmp_path: Path) -> None:
    late = FixedClock()
    late.advance(3600)
    store = await SqlStore.open(tmp_path, clock=late, ids=SteadyIds())
    await store.write(lambda tx: tx.append(RUN, NoteTaken(text="late")))
    await store.close()
    store = await SqlStore.open(tmp_path, clock=FixedClock(), ids=SteadyIds())
    await store.write(lambda tx: tx.append(RUN, NoteTaken(text="early")))
    events = await store.read(lambda view: view.events(EventQuery()))
    assert [event.seq for event in events] == [1, 2]
    assert events[0].position < events[1].position
    await store.close()


def _add_receipt(draft: Receipt, tx: Transaction) -> Receipt:
    return tx.add_receipt(draft)


_APPEND = """
import asyncio, sys
from pathlib import Path
from podium.core.events import NoteTaken
from podium.store import SqlStore
from podium.platform.system_clock import SystemClock, SystemIds

async def main(count):
    folder = Path(sys.argv[1])
    store = await SqlStore.open(
        folder / "state", clock=SystemClock(), ids=SystemIds(), key_dir=folder / "vault"
    )
    number = 0
    while count is None or number < count:
        text = f"note {number}"
        seq = await store.write(lambda tx: tx.append(sys.argv[2], NoteTaken(text=text)))
        if count is None:
            print(seq, flush=True)
        number += 1
    await store.close()
"""
_APPEND_FOR_EVER = _APPEND + "asyncio.run(main(None))"
_APPEND_TWENTY = _APPEND + "asyncio.run(main(20))"


async def test_a_second_store_on_the_file_costs_the_first_none_of_its_locks(tmp_path: Path) -> None:
    first = await opened(tmp_path)
    await first.write(lambda tx: tx.append(RUN, NoteTaken(text="mine")))
    second = await opened(tmp_path)
    await second.close()
    # A process that closes the file and finds no lock on it takes itself for the last one, and
    # removes the log from under the feet of the first.
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _APPEND_TWENTY, str(tmp_path), RUN
    )
    assert await other.wait() == 0
    assert first.path.with_name("podium.db-wal").exists()
    assert await first.write(lambda tx: tx.append(RUN, NoteTaken(text="mine"))) == 22
    await first.close()


async def test_a_file_that_was_replaced_is_noticed_before_anything_is_lost(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await store.write(lambda tx: tx.append(RUN, NoteTaken(text="kept")))
    away = store.path.rename(store.path.with_name("moved.db"))

    async def noticed() -> bool:
        try:
            await store.write(lambda tx: tx.append(RUN, NoteTaken(text="not for long")))
        except StoreUnusable as error:
            return "removed or replaced" in str(error)
        return False

    await retry_until(noticed)
    away.rename(store.path)
    assert await store.write(lambda tx: tx.append(RUN, NoteTaken(text="kept too"))) > 1
    await store.close()


async def test_a_head_that_cannot_be_anchored_keeps_nobody_waiting(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    odd = a_receipt().model_copy(update={"run_id": "run/../../x"})
    async with asyncio.timeout(120):
        await store.write(lambda tx: tx.add_receipt(odd))
        assert await store.write(lambda tx: tx.append(RUN, NoteTaken(text="goes on"))) == 1
        await store.close()
    assert "not anchored" in " ".join(store.problems)


async def test_a_receipt_moved_to_another_run_or_made_unreadable_is_found(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    for draft in (a_receipt(0), a_receipt(1)):
        await store.write(partial(_add_receipt, draft))
    for damage in (
        "UPDATE receipts SET run_id = 'run_zzz' WHERE number = 2",
        "UPDATE receipts SET body = '{}' WHERE number = 1",
    ):
        connection = sqlite3.connect(store.path)
        connection.execute(damage)
        connection.commit()
        connection.close()
        found = await store.read(lambda view: view.receipts())
        chains: dict[str, list[Receipt]] = {}
        for receipt in found:
            chains.setdefault(receipt.run_id, []).append(receipt)
        assert verify(chains, store.sealer, store.anchors), damage
    await store.close()


async def test_receipts_without_their_key_are_not_called_forged_by_a_new_one(
    tmp_path: Path,
) -> None:
    store = await opened(tmp_path)
    await store.write(partial(_add_receipt, a_receipt()))
    await store.close()
    shutil.rmtree(tmp_path / "vault")
    again = await opened(tmp_path)
    with pytest.raises(StoreUnusable, match="key of the receipts is missing"):
        await again.write(lambda tx: tx.must_be_able_to_seal())
    assert not (tmp_path / "vault").exists()
    await again.close()
