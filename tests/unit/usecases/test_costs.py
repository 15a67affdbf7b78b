"""Spending by day, flow and agent, and the causes of failed runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from podium.app.costs import DAYS, CostWatch, see_causes
from podium.core.decisions import Budget, Usage
from podium.core.events import UsageRecorded
from podium.core.work import Failure, Run, RunStatus
from podium.ports import Transaction
from podium.testing import FixedClock, MemoryStore
from tests.unit.contract.nouns import a_run

NOON = datetime(2031, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
async def store(clock: FixedClock) -> AsyncIterator[MemoryStore]:
    made = MemoryStore(clock)
    yield made
    await made.close()


def watch_over(store: MemoryStore) -> CostWatch:
    async def opened() -> MemoryStore:
        return store

    return CostWatch(opened)


async def use(store: MemoryStore, run: Run, source: str, usd: float, **usage: object) -> None:
    body = UsageRecorded(source=source, usage=Usage.model_validate({"usd": usd, **usage}))

    def work(tx: Transaction) -> None:
        if tx.run(run.id) is None:
            tx.add_run(run)
        tx.append(run.id, body)

    await store.write(work)


async def test_spending_is_summed_by_day_flow_and_source_and_learnt_on(
    store: MemoryStore, clock: FixedClock
) -> None:
    watch, one, other = watch_over(store), a_run(flow="pipeline"), a_run(flow="duet")
    await use(store, one, "agent:dev", 1.0, input_tokens=10)
    clock.advance(timedelta(days=1).total_seconds())
    await use(store, one, "tool:fetch", 0.5, complete=False)
    budgets = [
        Budget(scope="day", usd=9),
        Budget(scope="day", usd=4),
        Budget(scope="run", tokens=5),
    ]
    seen = await watch.look(clock.now(), budgets)
    assert len(seen.days) == DAYS
    assert [(day.name, day.usd) for day in seen.days[-2:]] == [
        ("2031-05-04", 1.0),
        ("2031-05-05", 0.5),
    ]
    assert (seen.day_limit_usd, seen.run_limit_usd) == (4, None)
    assert (seen.total.tokens, seen.total.unknown) == (10, 1)
    await use(store, other, "agent:dev", 2.0)
    seen = await watch.look(clock.now(), ())
    assert [(flow.name, flow.usd) for flow in seen.flows] == [("duet", 2.0), ("pipeline", 1.5)]
    assert [(source.name, source.usd) for source in seen.sources] == [
        ("agent:dev", 3.0),
        ("tool:fetch", 0.5),
    ]
    assert seen.today.usd == 2.5


async def test_days_that_are_over_are_let_go_of(store: MemoryStore, clock: FixedClock) -> None:
    watch = watch_over(store)
    await use(store, a_run(), "agent:dev", 1.0)
    assert (await watch.look(clock.now(), ())).total.usd == 1.0
    later = clock.now() + timedelta(days=DAYS)
    seen = await watch.look(later, ())
    assert (seen.total.records, seen.flows, seen.sources) == (0, (), ())
    assert (await watch_over(store).look(later, ())).total.records == 0


async def test_causes_are_counted_and_the_newest_is_named(store: MemoryStore) -> None:
    def failed(kind: str, words: str) -> Run:
        failure = Failure(kind=kind, message=words)
        return a_run(status=RunStatus.FAILED, failure=failure, finished_at=NOON)

    runs = [
        failed("AgentLost", "first"),
        failed("BudgetSpent", "too dear"),
        failed("AgentLost", "last"),
    ]

    def work(tx: Transaction) -> None:
        for run in (*runs, a_run(status=RunStatus.SUCCEEDED)):
            tx.add_run(run)

    await store.write(work)
    found = await see_causes(store)
    assert [(item.kind, item.runs, item.message) for item in found] == [
        ("AgentLost", 2, "last"),
        ("BudgetSpent", 1, "too dear"),
    ]
    assert found[0].last_id == runs[2].id
