"""Contract of every `Store`: queues, with the assignment of runs and the limit on how many run at once."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from podium.core.work import QueueCounts, QueueSpec, Run, RunStatus, Schedule
from podium.ports import Store, StoreView, Transaction
from podium.testing import FixedClock
from tests.integration.contract.databases import Database
from tests.unit.contract.nouns import NOON, a_queued_run, a_run, a_signal

WORK = QueueSpec(name="work")
GREET = ("greet",)


async def add(store: Store, *runs: Run) -> None:
    def work(tx: Transaction) -> None:
        for run in runs:
            tx.add_run(run)

    await store.write(work)


async def add_twin(store: Store, run: Run) -> Run:
    return await store.write(lambda tx: tx.add_run(run))


async def save(store: Store, run: Run) -> None:
    await store.write(lambda tx: tx.save_run(run))


async def send(store: Store, run_id: str, name: str = "answer") -> None:
    await store.write(lambda tx: tx.add_signal(a_signal(run_id, name)))


async def stored(store: Store, run_id: str) -> Run | None:
    return await store.read(lambda view: view.run(run_id))


async def claim(
    store: Store, queue: QueueSpec = WORK, worker: str = "w1", seconds: float = 0
) -> Run | None:
    now = NOON + timedelta(seconds=seconds)
    return await store.write(lambda tx: tx.claim(worker, queue, GREET, now))


async def test_a_claimed_run_is_running_owned_and_fenced(store: Store) -> None:
    run = a_queued_run(fence=4)
    await add(store, run)
    claimed = await claim(store, worker="w7")
    assert claimed is not None
    assert (claimed.id, claimed.status) == (run.id, RunStatus.RUNNING)
    assert (claimed.owner, claimed.fence, claimed.claimed_at) == ("w7", 5, NOON)
    assert await stored(store, run.id) == claimed
    await store.write(lambda tx: tx.guard(run.id, 5))


async def test_an_empty_queue_gives_nothing(store: Store) -> None:
    assert await claim(store) is None


async def test_runs_go_by_priority_and_then_by_age(store: Store) -> None:
    first, second, urgent = a_queued_run(), a_queued_run(), a_queued_run(priority=5)
    await add(store, first, second, urgent)
    claimed = [await claim(store) for _ in range(4)]
    assert [run and run.id for run in claimed] == [urgent.id, first.id, second.id, None]


async def test_only_ready_runs_of_this_queue_and_these_flows_are_claimed(store: Store) -> None:
    await add(
        store,
        a_run(),
        a_queued_run(queue="elsewhere"),
        a_queued_run(flow="unknown here"),
        a_queued_run(cancel_requested=True),
        a_queued_run(status=RunStatus.WAITING),
        a_queued_run(status=RunStatus.SUCCEEDED),
        a_queued_run(status=RunStatus.NEEDS_HUMAN),
    )
    assert await claim(store) is None


async def test_no_flows_claim_nothing(store: Store) -> None:
    await add(store, a_queued_run())
    assert await store.write(lambda tx: tx.claim("w1", WORK, (), NOON)) is None


async def test_a_delayed_run_is_not_claimed_before_its_time(store: Store) -> None:
    run = a_queued_run(not_before=NOON + timedelta(seconds=30))
    await add(store, run)
    assert await claim(store, seconds=29) is None
    assert await claim(store, seconds=30) is not None


async def test_twenty_workers_at_once_never_exceed_the_concurrency(database: Database) -> None:
    one, other = await database.open(), await database.open()
    await add(one, *(a_queued_run() for _ in range(30)))
    narrow = QueueSpec(name="work", concurrency=3)
    claims = [claim((one, other)[n % 2], narrow, worker=f"w{n}") for n in range(20)]
    won = [run for run in await asyncio.gather(*claims) if run is not None]
    assert len(won) == len({run.id for run in won}) == 3


async def test_twenty_workers_at_once_get_twenty_different_runs(database: Database) -> None:
    one, other = await database.open(), await database.open()
    await add(one, *(a_queued_run() for _ in range(20)))
    claims = [claim((one, other)[n % 2], worker=f"w{n}") for n in range(20)]
    won = [run for run in await asyncio.gather(*claims) if run is not None]
    assert len({run.id for run in won}) == 20
    assert await claim(one) is None


async def test_an_ended_or_waiting_run_gives_its_place_to_the_next(store: Store) -> None:
    await add(store, a_queued_run(), a_queued_run(), a_queued_run())
    narrow = QueueSpec(name="work", concurrency=1)
    for end in (RunStatus.SUCCEEDED, RunStatus.WAITING):
        held = await claim(store, narrow)
        assert held is not None
        assert await claim(store, narrow) is None
        await save(store, held.model_copy(update={"status": end, "owner": None}))
    assert await claim(store, narrow) is not None


async def test_a_rate_limit_counts_the_starts_within_its_window(store: Store) -> None:
    await add(store, *(a_queued_run() for _ in range(5)))
    slow = QueueSpec(name="work", rate_limit=2, rate_seconds=10)
    at = [0.0, 1.0, 2.0, 9.0, 10.0, 10.5, 11.0]
    claimed = [await claim(store, slow, seconds=seconds) is not None for seconds in at]
    assert claimed == [True, True, False, False, True, False, True]


async def test_a_limit_of_one_queue_does_not_hold_for_another(store: Store) -> None:
    await add(store, a_queued_run(), a_queued_run(queue="side"))
    assert await claim(store, QueueSpec(name="work", concurrency=1, rate_limit=1)) is not None
    assert await claim(store, QueueSpec(name="side", concurrency=1, rate_limit=1)) is not None


async def test_a_dedup_key_gives_back_the_unfinished_run(store: Store) -> None:
    first, second = a_queued_run(dedup_key="k"), a_queued_run(dedup_key="k")
    assert await add_twin(store, first) == first
    assert await add_twin(store, second) == first
    assert await stored(store, second.id) is None
    assert await claim(store) is not None
    running = await add_twin(store, second)
    assert (running.id, running.status) == (first.id, RunStatus.RUNNING)


async def test_a_dedup_key_is_free_again_once_its_run_ended(store: Store) -> None:
    first, second = a_queued_run(dedup_key="k"), a_queued_run(dedup_key="k")
    await add(store, first)
    ended = first.model_copy(update={"status": RunStatus.FAILED})
    await save(store, ended)
    assert await add_twin(store, second) == second


async def test_a_dedup_key_holds_within_its_queue(store: Store) -> None:
    here = a_queued_run(dedup_key="k")
    there = a_queued_run(dedup_key="k", queue="side")
    await add(store, here, there)
    assert await stored(store, there.id) == there


async def test_of_twenty_twins_added_at_once_one_is_stored(database: Database) -> None:
    one, other = await database.open(), await database.open()
    twins = [a_queued_run(dedup_key="k") for _ in range(20)]
    given = await asyncio.gather(
        *(add_twin((one, other)[number % 2], twin) for number, twin in enumerate(twins))
    )
    assert len({run.id for run in given}) == 1


async def test_a_signal_makes_a_waiting_run_of_a_queue_claimable_again(store: Store) -> None:
    run = a_queued_run(status=RunStatus.WAITING, waiting_for="answer", wake_at=NOON)
    await add(store, run)
    assert await claim(store) is None
    await send(store, run.id)
    claimed = await claim(store)
    assert claimed is not None
    assert (claimed.waiting_for, claimed.wake_at) == (None, None)


async def test_a_signal_leaves_runs_alone_that_somebody_hosts_or_no_queue_serves(
    store: Store,
) -> None:
    hosted = a_queued_run(status=RunStatus.WAITING, owner="w1", fence=1)
    foreground = a_run(status=RunStatus.WAITING)
    ended = a_queued_run(status=RunStatus.SUCCEEDED)
    for run in (hosted, foreground, ended):
        await add(store, run)
        await send(store, run.id)
        assert await stored(store, run.id) == run


async def test_next_due_time_is_the_soonest_delay_deadline_or_schedule(store: Store) -> None:
    def at(seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)

    async def next_due_at() -> datetime | None:
        return await store.read(lambda view: view.next_due_at())

    async def schedule(name: str, seconds: float, *, paused: bool) -> None:
        made = Schedule(
            name=name, flow="f", queue="q", every_seconds=9, next_at=at(seconds), paused=paused
        )
        await store.write(lambda tx: tx.save_schedule(made))

    assert await next_due_at() is None
    await schedule("soon", 50, paused=False)
    await schedule("stopped", 1, paused=True)
    assert await next_due_at() == at(50)
    await add(store, a_queued_run(status=RunStatus.WAITING, wake_at=at(40)))
    assert await next_due_at() == at(40)
    await add(store, a_queued_run(not_before=at(30)))
    assert await next_due_at() == at(30)
    await add(
        store,
        a_queued_run(status=RunStatus.WAITING, wake_at=at(2), owner="w1", fence=1),
        a_run(status=RunStatus.WAITING, wake_at=at(2)),
        a_queued_run(status=RunStatus.SUCCEEDED, wake_at=at(2), not_before=at(2)),
    )
    assert await next_due_at() == at(30)


async def test_runs_of_the_foreground_are_due_when_they_look_at_their_pull_request(
    store: Store,
) -> None:
    due = a_run(status=RunStatus.WAITING, waiting_for="pull_request:7", wake_at=NOON)
    later = NOON + timedelta(seconds=1)
    await add(
        store,
        due,
        a_run(status=RunStatus.WAITING, waiting_for="pull_request:8", wake_at=later),
        a_run(status=RunStatus.WAITING, waiting_for="approval:9", wake_at=NOON),
        a_run(status=RunStatus.WAITING, waiting_for="pull_request:7, approval:9", wake_at=NOON),
        a_queued_run(status=RunStatus.WAITING, waiting_for="pull_request:7", wake_at=NOON),
    )
    assert await store.read(lambda view: view.due_follow_ups(NOON)) == [due]
    assert await store.read(lambda view: view.answered_waits()) == []
    await send(store, due.id, "pull_request:7")
    assert await store.read(lambda view: view.answered_waits()) == [due]


async def test_waits_nobody_hosts_are_due_once_their_deadline_came(store: Store) -> None:
    due = a_queued_run(status=RunStatus.WAITING, wake_at=NOON)
    await add(
        store,
        due,
        a_queued_run(status=RunStatus.WAITING, wake_at=NOON + timedelta(seconds=1)),
        a_queued_run(status=RunStatus.WAITING),
        a_queued_run(status=RunStatus.WAITING, wake_at=NOON, owner="w1", fence=1),
        a_run(status=RunStatus.WAITING, wake_at=NOON),
        a_queued_run(wake_at=NOON),
    )
    assert await store.read(lambda view: view.due_waits(NOON)) == [due]


async def test_signals_are_known_by_run_and_name_until_they_are_taken(store: Store) -> None:
    first, second = a_run(), a_run()
    await add(store, first, second)
    for run, name in ((first, "go"), (first, "go"), (second, "answer"), (second, "go")):
        await send(store, run.id, name)

    async def untaken() -> set[tuple[str, str]]:
        return await store.read(lambda view: view.untaken_signals([first.id, second.id]))

    assert await untaken() == {(first.id, "go"), (second.id, "answer"), (second.id, "go")}
    await store.write(lambda tx: tx.take_signal(second.id, "answer"))
    await store.write(lambda tx: tx.take_signal(first.id, "go"))
    assert await untaken() == {(first.id, "go"), (second.id, "go")}


async def test_signals_to_other_runs_are_not_looked_at(store: Store) -> None:
    mine, other = a_run(), a_run()
    await add(store, mine, other)
    await send(store, mine.id, "go")
    await send(store, other.id, "go")
    many = [f"run_nobody{number}" for number in range(1200)]

    def look(view: StoreView) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        return view.untaken_signals({*many, mine.id}), view.untaken_signals([])

    assert await store.read(look) == ({(mine.id, "go")}, set())


async def test_cancel_requests_are_known_while_they_matter(store: Store) -> None:
    wished = [
        a_run(status=status, cancel_requested=True)
        for status in (RunStatus.RUNNING, RunStatus.WAITING)
    ]
    await add(
        store,
        *wished,
        a_run(status=RunStatus.CANCELLED, cancel_requested=True),
        a_run(status=RunStatus.RUNNING),
    )
    assert await store.read(lambda view: view.cancel_wished()) == {run.id for run in wished}


async def test_queues_are_tallied_by_what_their_unended_runs_do(
    store: Store, clock: FixedClock
) -> None:
    def made(seconds: float) -> datetime:
        return NOON - timedelta(seconds=seconds)

    await add(
        store,
        a_queued_run(not_before=NOON + timedelta(seconds=5), created_at=made(90)),
        a_queued_run(created_at=made(60), not_before=NOON),
        a_queued_run(created_at=made(30)),
        a_queued_run(status=RunStatus.RUNNING, owner="w1", fence=1),
        a_queued_run(status=RunStatus.WAITING),
        a_queued_run(status=RunStatus.NEEDS_HUMAN),
        a_queued_run(status=RunStatus.SUCCEEDED, finished_at=NOON),
        a_queued_run(queue="asleep", status=RunStatus.WAITING, created_at=made(99)),
        a_queued_run(queue="done", status=RunStatus.FAILED, finished_at=NOON),
        a_run(status=RunStatus.RUNNING),
    )
    asleep = QueueCounts(queue="asleep", waiting=1)
    assert await store.read(lambda view: view.tallies()) == [
        asleep,
        QueueCounts(
            queue="work",
            queued=2,
            delayed=1,
            running=1,
            waiting=1,
            needs_human=1,
            oldest_queued_at=made(60),
        ),
    ]
    clock.advance(5)
    [_, work] = await store.read(lambda view: view.tallies())
    assert (work.queued, work.delayed, work.oldest_queued_at) == (3, 0, made(90))


async def test_a_store_without_runs_has_no_tallies(store: Store) -> None:
    assert await store.read(lambda view: view.tallies()) == []


async def test_time_of_a_view_and_of_a_transaction_is_the_stores(
    store: Store, clock: FixedClock
) -> None:
    clock.advance(7)
    at = NOON + timedelta(seconds=7)
    assert await store.read(lambda view: view.now()) == at
    assert await store.write(lambda tx: tx.now()) == at


async def test_ends_are_counted_by_queue_from_a_given_time(store: Store) -> None:
    def ended(seconds: float, queue: str | None) -> Run:
        at = NOON + timedelta(seconds=seconds)
        return a_run(queue=queue, status=RunStatus.FAILED, finished_at=at)

    await add(store, ended(0, "work"), ended(1, "work"), ended(9, "work"), ended(5, "side"))
    await add(store, ended(0, "early"), ended(9, None), a_queued_run())
    since = NOON + timedelta(seconds=1)
    assert await store.read(lambda view: view.ended_since(since)) == {"work": 2, "side": 1}
