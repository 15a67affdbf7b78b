"""Contract of every `Store`: recorded usage is complete, in order, and has the flow that used it."""

from __future__ import annotations

from datetime import timedelta

from podium.core.decisions import Usage, UsageSums
from podium.core.events import NoteTaken, UsageRecorded
from podium.ports import Store, Transaction
from podium.testing import FixedClock
from tests.unit.contract.nouns import a_run


async def use(store: Store, run_id: str, source: str, usage: Usage) -> None:
    await store.write(lambda tx: tx.append(run_id, UsageRecorded(source=source, usage=usage)))


async def spent(
    store: Store, clock: FixedClock, after: int = 0, limit: int = 100
) -> list[UsageSums]:
    since = clock.now() - timedelta(days=1)
    return await store.read(lambda view: view.spent(since, after, limit))


async def test_usage_is_read_in_order_with_its_flow_and_from_a_position_on(
    store: Store, clock: FixedClock
) -> None:
    first, second = a_run(flow="pipeline"), a_run(flow="sense")

    def begin(tx: Transaction) -> None:
        for run in (first, second):
            tx.add_run(run)
        tx.append(first.id, NoteTaken(text="no usage"))

    await store.write(begin)
    await use(
        store, first.id, "agent:dev", Usage(input_tokens=5, output_tokens=2, usd=0.5, turns=1)
    )
    await use(store, second.id, "tool:fetch", Usage(seconds=3, complete=False))
    found = await spent(store, clock)
    assert [item[2:] for item in found] == [
        ("pipeline", "agent:dev", 0.5, 7, True),
        ("sense", "tool:fetch", 0.0, 0, False),
    ]
    assert found[0].position < found[1].position
    assert await spent(store, clock, after=found[0].position) == found[1:]
    assert await spent(store, clock, limit=1) == found[:1]


async def test_usage_of_before_is_left_out(store: Store, clock: FixedClock) -> None:
    run = a_run()
    await store.write(lambda tx: tx.add_run(run))
    await use(store, run.id, "agent:dev", Usage(usd=1.0))
    (found,) = await spent(store, clock)
    later = found.at + timedelta(microseconds=1)
    assert await store.read(lambda view: view.spent(later, 0, 10)) == []
