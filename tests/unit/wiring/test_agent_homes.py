"""Homes of agents: gone with their runs, kept while somebody may go on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.app.workspaces import tidy_homes
from podium.core.work import Run, RunStatus
from tests.integration.wiring.test_podium import configured


@pytest.mark.parametrize(
    ("status", "days", "kept"),
    [
        (RunStatus.RUNNING, 0, True),
        (RunStatus.WAITING, 0, True),
        (RunStatus.FAILED, 1, True),
        (RunStatus.FAILED, 8, False),
        (RunStatus.SUCCEEDED, 0, False),
        (RunStatus.CANCELLED, 0, False),
        (None, 0, False),
    ],
)
async def test_a_home_is_kept_while_its_run_may_go_on(
    tmp_path: Path, status: RunStatus | None, days: int, kept: bool
) -> None:
    podium = configured(tmp_path)
    try:
        store = await podium.store()
        home = podium.folders.homes / "run_1" / "claude"
        home.mkdir(parents=True)
        if status is not None:
            await _add_run(podium, status, days)
        await tidy_homes(podium.folders.homes, store, podium.clock)
        assert home.exists() is kept
    finally:
        await podium.close()


async def test_another_projects_homes_are_let_be(tmp_path: Path) -> None:
    podium = configured(tmp_path)
    try:
        store = await podium.store()
        podium.folders.homes.mkdir(parents=True)
        other = podium.folders.homes.parent / "otherproject" / "run_9" / "claude"
        other.mkdir(parents=True)
        await tidy_homes(podium.folders.homes, store, podium.clock)
        assert other.exists()
    finally:
        await podium.close()


async def _add_run(podium: Podium, status: RunStatus, days: int) -> None:
    then = podium.clock.now() - timedelta(days=days)
    run = Run(
        id="run_1",
        flow="story",
        flow_version=1,
        status=status,
        created_at=then,
        finished_at=then if status.ended else None,
    )
    store = await podium.store()
    await store.write(lambda tx: tx.save_run(run))
