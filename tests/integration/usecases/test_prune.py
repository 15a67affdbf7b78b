"""Forgetting runs that ended long ago."""

from __future__ import annotations

from datetime import timedelta

import pytest

from podium.app.databases import BATCH_RUNS, prune
from podium.core.errors import BadInput
from podium.core.work import Run, RunStatus
from podium.ports import RunQuery, Transaction
from tests.unit.usecases.scene import Scene

MONTH = timedelta(days=30)


async def add_ended(scene: Scene, count: int, ago: timedelta) -> None:
    def work(tx: Transaction) -> None:
        for _ in range(count):
            ended = scene.clock.now() - ago
            tx.save_run(
                Run(
                    id=scene.ids.new("run"),
                    flow="f",
                    status=RunStatus.FAILED,
                    created_at=ended,
                    finished_at=ended,
                )
            )

    await scene.store.write(work)


async def count_runs(scene: Scene) -> int:
    return len(await scene.store.read(lambda view: view.runs(RunQuery(limit=10_000))))


async def test_old_runs_go_in_batches_and_younger_ones_stay(scene: Scene) -> None:
    await add_ended(scene, BATCH_RUNS * 2 + 1, timedelta(days=31))
    await add_ended(scene, 3, timedelta(days=29))
    await scene.add_run()
    messages: list[int] = []
    done = await prune(scene.store, MONTH, report=messages.append)
    assert done.runs == BATCH_RUNS * 2 + 1
    assert messages == [BATCH_RUNS, BATCH_RUNS * 2, BATCH_RUNS * 2 + 1]
    assert await count_runs(scene) == 4


async def test_a_rehearsal_counts_and_forgets_nothing(scene: Scene) -> None:
    await add_ended(scene, 3, timedelta(days=31))
    done = await prune(scene.store, MONTH, dry_run=True)
    assert (done.runs, done.dry_run) == (3, True)
    assert await count_runs(scene) == 3


async def test_a_receipt_of_a_forgotten_run_stays(scene: Scene) -> None:
    run = await scene.add_run(status=RunStatus.SUCCEEDED)
    receipt = await scene.add_receipt(run)
    ended = run.model_copy(update={"finished_at": scene.clock.now() - MONTH * 2})
    await scene.store.write(lambda tx: tx.save_run(ended))
    assert (await prune(scene.store, MONTH)).runs == 1
    assert await scene.store.read(lambda view: view.receipts(run.id)) == [receipt]


async def test_a_time_before_all_calendars_is_refused(scene: Scene) -> None:
    with pytest.raises(BadInput, match="use fewer"):
        await prune(scene.store, timedelta(weeks=999_999))
