"""Long things by the page, and what was used against what may be."""

from __future__ import annotations

import pytest

from podium.app.costs import see_budgets
from podium.app.run_report import list_events, list_run_events, list_steps
from podium.core.decisions import Budget, Usage, counts_of
from podium.core.errors import UnknownId
from podium.core.work import Run, StepRecord, StepStatus
from podium.ports import Transaction
from tests.unit.usecases.scene import Scene


async def add_steps(scene: Scene, run: Run, many: int) -> None:
    def work(tx: Transaction) -> None:
        for number in range(many):
            tx.save_step(
                StepRecord(
                    run_id=run.id,
                    key=f"work#{number}",
                    status=StepStatus.COMPLETED,
                    ordinal=number,
                    started_at=scene.clock.now(),
                )
            )

    await scene.store.write(work)


async def test_steps_come_by_the_page_and_a_short_id_is_enough(scene: Scene) -> None:
    run = await scene.add_run()
    await add_steps(scene, run, 5)
    first = await list_steps(scene.store, run.id[-12:], limit=3)
    assert [item.ordinal for item in first] == [0, 1, 2]
    rest = await list_steps(scene.store, run.id, after=2, limit=3)
    assert [item.ordinal for item in rest] == [3, 4]
    with pytest.raises(UnknownId):
        await list_steps(scene.store, "run_nobody", limit=3)


async def test_events_come_by_the_page_of_all_runs_or_of_one(scene: Scene) -> None:
    one, other = await scene.add_run(), await scene.add_run()
    for text in ("a", "b"):
        await scene.note(one, text)
        await scene.note(other, text)
    everything = await list_events(scene.store, limit=3)
    assert [(item.run_id, item.seq) for item in everything] == [
        (one.id, 1),
        (other.id, 1),
        (one.id, 2),
    ]
    last = await list_events(scene.store, after=everything[-1].position, limit=3)
    assert [item.run_id for item in last] == [other.id]
    assert await list_events(scene.store, limit=3, types=("run_failed",)) == []
    (second,) = await list_run_events(scene.store, one.id, after=1, limit=3)
    assert second.seq == 2


async def test_usage_of_today_and_of_a_run_is_reported_against_every_limit(scene: Scene) -> None:
    run, now = await scene.add_run(), scene.clock.now()

    def spend(tx: Transaction) -> None:
        for name, usd in ((run.id, 2.0), ("another", 1.0)):
            for counter, amount in counts_of(Usage(usd=usd), name, "work#0", now):
                tx.count(counter, now, amount)

    await scene.store.write(spend)
    limits = (Budget(scope="day", usd=10), Budget(scope="run", usd=5), Budget(scope="step", usd=1))
    seen = await see_budgets(scene.store, scene.clock, limits, run=run.id)
    assert seen.today.usd == 3.0
    assert seen.of_run
    assert seen.of_run.usd == 2.0
    assert [budget.used.usd for budget in seen.budgets] == [3.0, 2.0, 0.0]
    assert (await see_budgets(scene.store, scene.clock, ())).of_run is None
