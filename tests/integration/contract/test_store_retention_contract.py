"""Contract of every `Store`: deletion of ended runs only, and never of a proof."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from podium.core.errors import NotPossibleNow
from podium.core.work import Run, RunStatus
from podium.ports import EventQuery, Store, Transaction
from tests.integration.contract.databases import Database
from tests.unit.contract.nouns import (
    NOON,
    a_call,
    a_note,
    a_receipt,
    a_run,
    a_signal,
    a_step,
    an_approval,
)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def an_ended_run(seconds: float = 0, **changes: object) -> Run:
    return a_run(**{"status": RunStatus.SUCCEEDED, "finished_at": at(seconds)} | changes)


async def keep(store: Store, *runs: Run) -> None:
    def work(tx: Transaction) -> None:
        for run in runs:
            tx.save_run(run)

    await store.write(work)


async def ended_before(store: Store, seconds: float, limit: int = 100) -> list[str]:
    return await store.read(lambda view: view.ended_before(at(seconds), limit))


async def forget(store: Store, *runs: Run) -> None:
    await store.write(lambda tx: tx.drop_runs([run.id for run in runs]))


async def test_runs_that_ended_before_a_given_time_come_oldest_end_first(store: Store) -> None:
    late = an_ended_run(3, status=RunStatus.SUCCEEDED)
    early = an_ended_run(1, status=RunStatus.FAILED)
    middle = an_ended_run(2, status=RunStatus.CANCELLED)
    await keep(store, late, early, middle)
    assert await ended_before(store, 10) == [early.id, middle.id, late.id]
    assert await ended_before(store, 3) == [early.id, middle.id]
    assert await ended_before(store, 10, limit=1) == [early.id]
    assert await ended_before(store, 0) == []


async def test_a_run_counts_as_ended_from_its_last_end_on(store: Store) -> None:
    run = a_run(status=RunStatus.RUNNING)
    await keep(store, run)
    assert await ended_before(store, 10) == []
    await keep(store, an_ended_run(1, id=run.id, status=RunStatus.FAILED))
    assert await ended_before(store, 2) == [run.id]
    await keep(store, run)
    assert await ended_before(store, 10) == []
    await keep(store, an_ended_run(5, id=run.id))
    assert await ended_before(store, 5) == []
    assert await ended_before(store, 6) == [run.id]


@pytest.mark.parametrize(
    "status", [RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.NEEDS_HUMAN]
)
async def test_a_run_stays_while_its_parent_or_a_child_has_not_ended(
    store: Store, status: RunStatus
) -> None:
    parent = a_run(status=status)
    child = an_ended_run(1, parent_id=parent.id)
    ended_parent = an_ended_run(2)
    unended_child = a_run(status=status, parent_id=ended_parent.id)
    await keep(store, parent, child, ended_parent, unended_child)
    assert await ended_before(store, 10) == []
    await keep(store, an_ended_run(5, id=parent.id), an_ended_run(6, id=unended_child.id))
    assert await ended_before(store, 5) == [child.id, ended_parent.id]


async def test_a_child_whose_parent_was_forgotten_can_be_forgotten_too(store: Store) -> None:
    parent = an_ended_run(1)
    child = an_ended_run(2, parent_id=parent.id)
    await keep(store, parent, child)
    await forget(store, parent)
    kept = await store.read(lambda view: view.run(child.id))
    assert kept is not None
    assert kept.parent_id == parent.id
    assert await ended_before(store, 10) == [child.id]


async def test_a_forgotten_run_leaves_its_receipts_and_approvals_alone(store: Store) -> None:
    gone, kept = an_ended_run(), an_ended_run()

    def work(tx: Transaction) -> None:
        for run in (gone, kept):
            tx.save_run(run)
            tx.append(run.id, a_note())
            tx.save_step(a_step(run.id, "one"))
            tx.add_signal(a_signal(run.id))
            tx.save_call(a_call(run.id, f"{run.id}:one:0"))
            tx.save_approval(an_approval(run.id))
            tx.add_receipt(a_receipt(run.id))

    await store.write(work)
    await forget(store, gone)

    async def left(run: Run) -> tuple[int, ...]:
        return await store.read(
            lambda view: (
                int(view.run(run.id) is not None),
                len(view.events(EventQuery(run_id=run.id))),
                len(view.steps(run.id)),
                len(view.signals(run.id)),
                len(view.calls(run.id)),
                len(view.approvals(run_id=run.id)),
                len(view.receipts(run.id)),
            )
        )

    assert await left(gone) == (0, 0, 0, 0, 0, 1, 1)
    assert await left(kept) == (1,) * 7


async def test_a_run_that_has_not_ended_is_refused_and_nothing_is_forgotten(store: Store) -> None:
    ended, running = an_ended_run(), a_run(status=RunStatus.RUNNING)
    await keep(store, ended, running)
    with pytest.raises(NotPossibleNow, match=rf"{running.id}.*running.*podium cancel"):
        await forget(store, ended, running)
    assert await store.read(lambda view: view.run(ended.id)) == ended


async def test_forgetting_nothing_or_what_is_gone_already_does_nothing(store: Store) -> None:
    run = an_ended_run()
    await keep(store, run)
    await forget(store)
    await forget(store, run)
    await forget(store, run)
    assert await store.read(lambda view: view.run(run.id)) is None


async def test_more_runs_than_one_statement_takes_are_forgotten_at_once(store: Store) -> None:
    runs = [an_ended_run() for _ in range(1203)]
    await keep(store, *runs)
    await forget(store, *runs[:-1])
    assert await ended_before(store, 10) == [runs[-1].id]


async def test_a_follower_misses_nothing_when_the_newest_events_are_forgotten(
    database: Database,
) -> None:
    store, other = await database.open(), await database.open()
    run = an_ended_run()
    await keep(store, run)
    await store.write(lambda tx: tx.append(run.id, a_note("old")))
    seen = await other.read(lambda view: view.last_position())
    await forget(store, run)
    await store.write(lambda tx: tx.append("run_next", a_note("new")))
    query = EventQuery(after_position=seen)
    [event] = await other.read(lambda view: view.events(query))
    assert event.run_id == "run_next"
