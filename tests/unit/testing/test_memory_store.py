"""Specifics of the store without a file; the rest is in the contract suites."""

from __future__ import annotations

from podium.core.events import NoteTaken
from podium.core.work import StepRecord, StepStatus
from podium.ports import EventQuery, Journal, Store
from podium.testing import FixedClock, MemoryJournal, MemoryStore


def without_secrets(text: str) -> str:
    return text.replace("hunter2", "[secret]")


async def test_secrets_are_removed_from_whatever_is_written() -> None:
    store = MemoryStore(clean=without_secrets)
    step = StepRecord(
        run_id="run_a",
        key="k",
        status=StepStatus.COMPLETED,
        output={"password": "hunter2"},
        started_at=FixedClock().now(),
    )
    kept = await store.write(lambda tx: tx.save_step(step))
    await store.write(lambda tx: tx.append("run_a", NoteTaken(text="it is hunter2")))
    store.note("run_a", NoteTaken(text="hunter2 again"))
    await store.write(lambda tx: None)
    events = await store.read(lambda view: view.events(EventQuery()))
    assert kept.output == {"password": "[secret]"}
    assert [event.body for event in events] == [
        NoteTaken(text="it is [secret]"),
        NoteTaken(text="[secret] again"),
    ]
    await store.close()


async def test_parallel_stores_share_one_memory_and_close_separately() -> None:
    first = MemoryStore()
    second: Store = MemoryStore(beside=first)
    apart = MemoryStore()
    await first.write(lambda tx: tx.append("run_a", NoteTaken(text="hello")))
    await first.close()
    assert await second.read(lambda view: view.last_seq("run_a")) == 1
    assert await apart.read(lambda view: view.last_seq("run_a")) == 0
    await second.close()
    await apart.close()


async def test_a_journal_without_a_store_has_one_of_its_own() -> None:
    journal: Journal = (memory := MemoryJournal())
    assert await journal.append("run_a", NoteTaken(text="hello")) == 1
    assert len(await journal.read(EventQuery(run_id="run_a"))) == 1
    await memory.store.close()
