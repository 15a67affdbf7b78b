"""Clearing away what runs that are over have left: homes of their agents, and what was kept of folders."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from podium.domain.work import Run, RunStatus

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

KEPT_AFTER_FAILURE = timedelta(days=7)
"""A run that failed may be retried, and its agents then go on with their conversations."""


async def tidy_homes(podium: Podium) -> None:
    """Remove the homes of runs that are over, and copies of logins that a killed Podium left behind."""
    homes = podium.folders.homes
    if not homes.is_dir():
        return
    from podium.agents import sweep_homes

    names = [entry.name for entry in homes.iterdir()]
    now = podium.clock.now()
    store = await podium.store()
    over = await store.read(lambda view: {name for name in names if _is_over(view.run(name), now)})
    await asyncio.to_thread(sweep_homes, homes, over.__contains__)


async def tidy_grounds(podium: Podium) -> None:
    """Remove copies that runs of playbooks worked in, and what was kept of folders long ago."""
    if not podium.folders.grounds.is_dir():
        return
    from podium.wiring.playbook_places import grounds_of

    grounds = grounds_of(podium)
    names = await asyncio.to_thread(grounds.runs)
    now = podium.clock.now()
    store = await podium.store()
    over = await store.read(lambda view: {name for name in names if _is_over(view.run(name), now)})
    await grounds.tidy(over.__contains__)


def _is_over(run: Run | None, now: datetime) -> bool:
    """Whether nobody will go on with the run. One that is not known was a check."""
    if run is None or run.status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED):
        return True
    if run.status is not RunStatus.FAILED or run.finished_at is None:
        return False
    return now - run.finished_at > KEPT_AFTER_FAILURE
