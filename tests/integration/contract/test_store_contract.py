"""Contract of every `Store`: transactions, notes and changes."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Never

import pytest

from podium.core.errors import LeaseLost, NotPossibleNow
from podium.core.work import RunStatus
from podium.ports import EventQuery, RunQuery, Store, StoreView, Transaction
from podium.testing import FixedClock, retry_until
from tests.integration.contract.databases import Database
from tests.unit.contract.nouns import (
    NOON,
    a_call,
    a_note,
    a_queued_run,
    a_receipt,
    a_run,
    a_signal,
    a_step,
    an_approval,
)

ALL = EventQuery(limit=10_000)


class Changed(Exception):
    """Somebody thought better of it."""


async def texts(store: Store, query: EventQuery = ALL) -> list[str]:
    events = await store.read(lambda view: view.events(query))
    return [event.body.model_dump()["text"] for event in events]


async def test_write_gives_back_what_the_work_returned(store: Store) -> None:
    assert await store.write(lambda tx: tx.append("run_a", a_note())) == 1


async def test_a_transaction_reads_its_own_writes(store: Store) -> None:
    run = a_run()

    def work(tx: Transaction) -> tuple[bool, int, int]:
        tx.save_run(run)
        tx.append(run.id, a_note())
        return tx.run(run.id) == run, tx.last_seq(run.id), len(tx.events(ALL))

    assert await store.write(work) == (True, 1, 1)


async def test_work_that_raises_leaves_nothing_of_any_kind(store: Store) -> None:
    run = a_run()
    await store.write(lambda tx: tx.append(run.id, a_note("before")))

    def work(tx: Transaction) -> Never:
        tx.append(run.id, a_note("never"))
        tx.save_run(run)
        tx.save_step(a_step(run.id, "first#0"))
        tx.add_signal(a_signal(run.id))
        tx.save_call(a_call(run.id, "k"))
        tx.save_approval(an_approval(run.id))
        tx.add_receipt(a_receipt(run.id))
        tx.count("calls", NOON)
        raise Changed

    with pytest.raises(Changed):
        await store.write(work)

    def everything(view: StoreView) -> list[object]:
        return [
            view.run(run.id),
            *view.steps(run.id),
            *view.signals(run.id),
            view.call("k"),
            *view.approvals(),
            *view.receipts(),
            view.counted("calls", NOON),
        ]

    assert await texts(store) == ["before"]
    assert not any(await store.read(everything))


async def test_the_number_of_a_rolled_back_event_is_given_to_the_next(store: Store) -> None:
    def work(tx: Transaction) -> Never:
        tx.append("run_a", a_note("never"))
        raise Changed

    with pytest.raises(Changed):
        await store.write(work)
    assert await store.write(lambda tx: tx.append("run_a", a_note())) == 1


async def test_fifty_writers_at_once_leave_no_gap_and_lose_nothing(store: Store) -> None:
    async def writer(number: int) -> list[int]:
        own = f"run_{number % 5}"
        return [await store.write(lambda tx: tx.append(own, a_note())) for _ in range(4)]

    given = await asyncio.gather(*(writer(number) for number in range(50)))

    events = await store.read(lambda view: view.events(ALL))
    positions = [event.position for event in events]
    assert positions == sorted(set(positions))
    assert len(events) == 200
    for run in (f"run_{number}" for number in range(5)):
        assert [event.seq for event in events if event.run_id == run] == list(range(1, 41))
    assert all(seqs == sorted(seqs) for seqs in given)


async def test_works_that_raise_beside_others_take_back_their_own_writes_alone(
    store: Store,
) -> None:
    def work(number: int, tx: Transaction) -> int:
        seq = tx.append("run_a", a_note(str(number)))
        tx.add_receipt(a_receipt("run_a"))
        if number % 3 == 0:
            raise Changed
        return seq

    outcomes = await asyncio.gather(
        *(store.write(partial(work, number)) for number in range(30)),
        return_exceptions=True,
    )

    kept = [number for number in range(30) if number % 3]
    assert [isinstance(outcome, Changed) for outcome in outcomes] == [
        number % 3 == 0 for number in range(30)
    ]
    assert sorted(await texts(store), key=int) == [str(number) for number in kept]
    events = await store.read(lambda view: view.events(ALL))
    assert [event.seq for event in events] == list(range(1, len(kept) + 1))
    receipts = await store.read(lambda view: view.receipts("run_a"))
    assert [receipt.number for receipt in receipts] == list(range(1, len(kept) + 1))


async def test_two_handles_writing_at_once_share_one_numbering(database: Database) -> None:
    one, other = await database.open(), await database.open()

    async def write_twenty(store: Store) -> None:
        for _ in range(20):
            await store.write(lambda tx: tx.append("run_a", a_note()))

    await asyncio.gather(write_twenty(one), write_twenty(other))
    events = await one.read(lambda view: view.events(ALL))
    assert [event.seq for event in events] == list(range(1, 41))


async def test_view_keeps_one_point_in_time_while_others_write(database: Database) -> None:
    one, other = await database.open(), await database.open()
    await one.write(lambda tx: tx.append("run_a", a_note()))
    looked, wrote = threading.Event(), threading.Event()

    def look_twice(view: StoreView) -> tuple[int, int]:
        first = view.last_seq("run_a")
        looked.set()
        wrote.wait(120)
        return first, view.last_seq("run_a")

    looking = asyncio.create_task(one.read(look_twice))
    await asyncio.to_thread(looked.wait, 120)
    await other.write(lambda tx: tx.append("run_a", a_note()))
    wrote.set()

    assert await looking == (1, 1)


async def test_events_carry_the_time_of_the_clock(store: Store, clock: FixedClock) -> None:
    clock.advance(90)
    await store.write(lambda tx: tx.append("run_a", a_note()))
    (event,) = await store.read(lambda view: view.events(ALL))
    assert event.at == clock.now()


async def test_what_a_caller_changes_afterwards_does_not_reach_the_store(store: Store) -> None:
    run = a_run(input={"names": ["a"]})
    await store.write(lambda tx: tx.save_run(run))

    async def names() -> list[list[str]]:
        one = await store.read(lambda view: view.run(run.id))
        assert one is not None
        listed = await store.read(lambda view: view.runs(RunQuery()))
        return [found.input["names"] for found in (one, *listed)]

    run.input["names"].append("b")
    for found in await names():
        assert found == ["a"]
        found.append("c")
    assert await names() == [["a"], ["a"]]


async def test_the_guard_lets_the_owner_of_the_fence_pass(store: Store) -> None:
    run = a_run(owner="w1", fence=3, status=RunStatus.RUNNING)
    await store.write(lambda tx: tx.save_run(run))

    def work(tx: Transaction) -> None:
        tx.guard(run.id, 3)
        tx.append("run_a", a_note("kept"))

    await store.write(work)
    assert await texts(store) == ["kept"]


@pytest.mark.parametrize(
    ("owner", "fence"), [("w1", 2), ("w1", 4), (None, 3)], ids=["older", "newer", "nobody's"]
)
async def test_the_guard_refuses_every_other_fence(
    store: Store, owner: str | None, fence: int
) -> None:
    run = a_run(owner=owner, fence=3, status=RunStatus.RUNNING)
    await store.write(lambda tx: tx.save_run(run))
    with pytest.raises(LeaseLost):
        await store.write(lambda tx: tx.guard(run.id, fence))


async def test_the_guard_refuses_a_run_that_is_not_there(store: Store) -> None:
    with pytest.raises(LeaseLost):
        await store.write(lambda tx: tx.guard("run_none", 0))


async def test_a_note_arrives_by_itself(store: Store) -> None:
    store.note("run_a", a_note("soon"))

    async def arrived() -> bool:
        return await texts(store) == ["soon"]

    await retry_until(arrived)


async def test_notes_stand_before_the_write_that_follows_them(store: Store) -> None:
    store.note("run_a", a_note("one"))
    store.note("run_a", a_note("two"))
    await store.write(lambda tx: tx.append("run_a", a_note("three")))
    store.note("run_a", a_note("four"))
    await store.write(lambda tx: tx.append("run_a", a_note("five")))
    assert await texts(store) == ["one", "two", "three", "four", "five"]


async def test_notes_survive_the_failure_of_the_write_they_would_travel_with(store: Store) -> None:
    def work(tx: Transaction) -> Never:
        raise Changed

    store.note("run_a", a_note("kept"))
    with pytest.raises(Changed):
        await store.write(work)
    await store.write(lambda tx: tx.append("run_a", a_note("next")))
    assert await texts(store) == ["kept", "next"]


async def test_changes_yields_at_once(store: Store) -> None:
    changes = store.changes()
    assert await asyncio.wait_for(anext(changes, "ended"), 120) is None
    await changes.aclose()  # type: ignore[attr-defined]  # an async generator in all stores


async def test_changes_wakes_for_commits_of_another_handle(database: Database) -> None:
    here, there = await database.open(), await database.open()
    changes = here.changes()
    await anext(changes)
    for number in range(3):
        waiting = asyncio.ensure_future(anext(changes))
        await there.write(lambda tx: tx.append("run_a", a_note()))
        await asyncio.wait_for(waiting, 120)
        assert await here.read(lambda view: view.last_seq("run_a")) == number + 1
    await changes.aclose()  # type: ignore[attr-defined]  # an async generator in all stores


async def test_a_commit_between_two_looks_is_not_missed(store: Store) -> None:
    changes = store.changes()
    await anext(changes)
    await store.write(lambda tx: tx.append("run_a", a_note()))
    assert await asyncio.wait_for(anext(changes, "ended"), 120) is None
    await changes.aclose()  # type: ignore[attr-defined]  # an async generator in all stores


async def test_burst_of_commits_is_reported_in_fewer_changes(store: Store) -> None:
    changes = store.changes()
    await anext(changes)
    for _ in range(30):
        await store.write(lambda tx: tx.append("run_a", a_note()))
    await asyncio.wait_for(anext(changes), 120)
    seen = 1
    try:
        while True:
            await asyncio.wait_for(anext(changes), 0.2)
            seen += 1
    except TimeoutError:
        assert seen < 10


async def test_close_writes_what_was_noted(database: Database, store: Store) -> None:
    store.note("run_a", a_note("last words"))
    await store.close()
    assert await texts(await database.open()) == ["last words"]


async def test_close_ends_the_listeners(store: Store) -> None:
    looks = 0

    async def listen() -> None:
        nonlocal looks
        async for _ in store.changes():
            await store.read(lambda view: view.last_position())
            looks += 1

    listening = asyncio.create_task(listen())
    await retry_until(lambda: looks)
    await store.close()
    await asyncio.wait_for(listening, 120)


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.close()
    await store.close()
    with pytest.raises(NotPossibleNow, match="closed"):
        await store.write(lambda tx: None)
    with pytest.raises(NotPossibleNow, match="closed"):
        await store.read(lambda view: None)


async def test_a_queued_run_is_kept_whole(store: Store) -> None:
    run = a_queued_run(
        task="tidy",
        input={"n": [1, None]},
        settings={"mode": "x"},
        priority=3,
        dedup_key="d",
        parent_id="run_p",
        not_before=NOON,
    )
    await store.write(lambda tx: tx.add_run(run))
    assert await store.read(lambda view: view.run(run.id)) == run
