"""Many who follow, one who reads: nobody misses an event unless they are told so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from podium.core.events import Event, NoteTaken, RunCancelled
from podium.core.work import Run, RunStatus
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import StoreView, Transaction
from podium.store import SqlStore
from podium.testing import retry_until
from podium.web.live.hub import PAGE, WAITING, Channel, Gap, Hub

T = TypeVar("T")
PATIENCE_SECONDS = 120


class CountedStore:
    """A store that counts how often it is read."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.reads = 0

    async def read(self, work: Callable[[StoreView], T]) -> T:
        self.reads += 1
        return await self._store.read(work)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@asynccontextmanager
async def journal(folder: Path) -> AsyncIterator[tuple[CountedStore, Hub]]:
    store = await SqlStore.open(folder, clock=SystemClock(), ids=SystemIds())
    counted = CountedStore(store)

    async def given() -> CountedStore:
        return counted

    hub = Hub(given)  # type: ignore[arg-type]  # what it does not count it hands on
    try:
        yield counted, hub
    finally:
        await hub.close()
        await store.close()


async def begin(store: CountedStore) -> str:
    now = SystemClock().now()
    run = Run(id=SystemIds().new("run"), flow="x", status=RunStatus.RUNNING, created_at=now)
    await write(store, lambda tx: tx.add_run(run))
    return run.id


async def write(store: CountedStore, work: Callable[[Transaction], object]) -> None:
    await store.write(work)  # type: ignore[operator]  # handed on


async def note(store: CountedStore, run_id: str, first: int, last: int) -> None:
    def work(tx: Transaction) -> None:
        for number in range(first, last):
            tx.append(run_id, NoteTaken(text=str(number)))

    await write(store, work)


async def end(store: CountedStore, run_id: str) -> None:
    def work(tx: Transaction) -> None:
        run = tx.run(run_id)
        assert run
        tx.append(run_id, RunCancelled())
        tx.save_run(run.model_copy(update={"status": RunStatus.CANCELLED}))

    await write(store, work)


async def seqs(stream: AsyncIterator[Event | Gap], messages: list[int] | None = None) -> list[int]:
    messages = [] if messages is None else messages
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for item in stream:
            assert isinstance(item, Event)
            messages.append(item.seq)
    return messages


def all_messages(messages: list[list[int]], many: int) -> bool:
    return all(len(item) == many for item in messages)


async def test_two_hundred_followers_cost_hardly_more_reads_than_one(tmp_path: Path) -> None:
    async with journal(tmp_path) as (store, hub):
        costs = []
        for many in (1, 200):
            run_id = await begin(store)
            await note(store, run_id, 0, 20)
            store.reads = 0
            messages: list[list[int]] = [[] for _ in range(many)]
            following = [
                asyncio.create_task(seqs(hub.follow(run_id, after=0), item)) for item in messages
            ]
            for number in range(20, 50):
                await retry_until(partial(all_messages, messages, number))
                await note(store, run_id, number, number + 1)
            await end(store, run_id)
            assert await asyncio.gather(*following) == [list(range(1, 52))] * many
            costs.append(store.reads)
        alone, together = costs
        assert together <= 1.5 * alone, costs
        assert hub.followers == 0


async def test_a_follower_gets_what_was_and_what_comes_without_a_hole_while_many_write(
    tmp_path: Path,
) -> None:
    async with journal(tmp_path) as (store, hub):
        run_id = await begin(store)

        async def scribble() -> None:
            for number in range(150):
                await note(store, run_id, number * 10, number * 10 + 10)
            await end(store, run_id)

        writing = asyncio.create_task(scribble())
        # Each joins at another moment, some in the middle of the past.
        following = []
        for number in range(12):
            following.append(asyncio.create_task(seqs(hub.follow(run_id, after=number * 20))))
            await asyncio.sleep(0)
        await writing
        late = await seqs(hub.follow(run_id, after=1400))
        for number, item in enumerate(await asyncio.gather(*following)):
            assert item == list(range(number * 20 + 1, 1502))
        assert late == list(range(1401, 1502))


async def test_too_slow_follower_is_notified_of_the_gap_and_continues_with_what_is_new(
    tmp_path: Path,
) -> None:
    async with journal(tmp_path) as (store, hub):
        run_id = await begin(store)
        slow = hub.follow(run_id, after=0)
        async with aclosing(slow):  # type: ignore[type-var]  # it is an async generator
            first = asyncio.ensure_future(anext(slow))
            await retry_until(lambda: hub.followers == 1)
            await note(store, run_id, 0, 1)
            assert isinstance(await first, Event)
            quick = asyncio.create_task(seqs(hub.follow(run_id, after=0)))
            many = 2 * PAGE + WAITING
            await note(store, run_id, 0, many)
            # The quick one was told everything, so the slow one has been given up on by now.
            await retry_until(lambda: quick.done() or hub.followers == 2)
            await note(store, run_id, 0, 1)
            await end(store, run_id)
            assert await quick == list(range(1, many + 4))
            rest = [item async for item in slow]
        messages = [item.seq for item in rest if isinstance(item, Event)]
        (gap,) = [item for item in rest if isinstance(item, Gap)]
        assert messages[:PAGE] == list(range(2, PAGE + 2))
        assert gap.after == PAGE + 1
        assert sorted({*messages, *range(gap.after + 1, gap.to + 1)}) == list(range(2, many + 4))


async def test_all_runs_are_followed_by_position_and_only_what_is_requested_is_sent(
    tmp_path: Path,
) -> None:
    async with journal(tmp_path) as (store, hub):
        old, new = await begin(store), await begin(store)
        await note(store, old, 0, 3)
        before = await store.read(lambda view: view.last_position())
        messages: list[str] = []

        async def follow(after: int | None) -> None:
            async for item in hub.follow(after=after, types=("run_cancelled",)):
                assert isinstance(item, Event)
                messages.append(item.run_id)

        following = [asyncio.create_task(follow(None)), asyncio.create_task(follow(before))]
        await retry_until(lambda: hub.followers == 2)
        await note(store, new, 0, 3)
        # One of them begins with what is new, so it must have begun.
        await retry_until(lambda: hub._reader and hub._reader.begun.is_set())
        await end(store, new)
        await retry_until(lambda: len(messages) == 2)
        assert messages == [new, new]
        await hub.close()
        await asyncio.gather(*following)


async def test_streams_end_when_the_hub_is_closed_and_nobody_reads_on(tmp_path: Path) -> None:
    async with journal(tmp_path) as (store, hub):
        run_id = await begin(store)
        following = [asyncio.create_task(seqs(hub.follow(run_id, after=0))) for _ in range(3)]
        await retry_until(lambda: hub.followers == 3)
        await hub.close()
        assert await asyncio.gather(*following) == [[], [], []]
        assert await seqs(hub.follow(run_id, after=0)) == []
        reads = store.reads
        await note(store, run_id, 0, 1)
        assert store.reads == reads


async def test_previously_ended_run_is_reported_and_ends(tmp_path: Path) -> None:
    async with journal(tmp_path) as (store, hub):
        run_id = await begin(store)
        await note(store, run_id, 0, 3)
        await end(store, run_id)
        assert await seqs(hub.follow(run_id, after=1)) == [2, 3, 4]
        assert await seqs(hub.follow(run_id)) == []


async def test_events_read_by_a_follower_before_their_notice_are_remembered_once(
    tmp_path: Path,
) -> None:
    async with journal(tmp_path) as (store, _):
        run_id = await begin(store)
        await note(store, run_id, 0, 5)
        shared = Channel(run_id)
        first = await shared.page(store, 0, frozenset())  # type: ignore[arg-type]  # handed on
        for event in first.events[3:]:
            shared.publish(event)
        again = await shared.page(store, 0, frozenset())  # type: ignore[arg-type]  # handed on
        assert [event.seq for event in again.events] == [1, 2, 3, 4, 5]
        assert store.reads == 1
