"""Forgetting runs that ended long ago, a few at a time, while work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from podium.domain.errors import BadInput
from podium.domain.model import Noun
from podium.ports import Store, Tx

BATCH_RUNS = 500
"""Runs of one transaction: everybody else's writes wait for it, a twentieth of a second or so."""

PAUSE_SECONDS = 0.02
"""Between two of them, for those who wait: SQLite keeps no order among them."""

MOST_COUNTED = 1_000_000
"""Runs that are counted when nothing is to be removed."""


class Pruned(Noun):
    """How many runs were forgotten, or would be."""

    before: datetime
    runs: int
    dry_run: bool


async def prune(
    store: Store,
    older_than: timedelta,
    *,
    dry_run: bool = False,
    tell: Callable[[int], None] = lambda runs: None,
) -> Pruned:
    """Forget runs that ended longer ago than this, with their events, steps, signals and calls.

    Their receipts and approvals stay. Whatever stops it, what is forgotten is so whole runs at a time.
    `tell` hears how many went so far.
    """
    now = await store.read(lambda view: view.now())
    try:
        before = now - older_than
    except OverflowError:
        raise BadInput(f"{older_than.days} days ago there was no calendar; name fewer") from None
    if dry_run:
        found = await store.read(lambda view: view.ended_before(before, MOST_COUNTED))
        return Pruned(before=before, runs=len(found), dry_run=True)
    runs = 0
    while gone := await store.write(lambda tx: _forget_some(tx, before)):
        runs += gone
        tell(runs)
        await asyncio.sleep(PAUSE_SECONDS)
    return Pruned(before=before, runs=runs, dry_run=False)


def _forget_some(tx: Tx, before: datetime) -> int:
    # Found and forgotten in one transaction: a run that somebody retries meanwhile is no longer found.
    ids = tx.ended_before(before, BATCH_RUNS)
    tx.drop_runs(ids)
    return len(ids)
