"""Runs at work on branches that cannot be merged with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.domain.model import Noun
from podium.ports import EventQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.domain.work import Run
    from podium.ports import Store


class RunsCollide(Noun):
    """Two live runs that get in each other's way."""

    run: str
    other: str
    paths: tuple[str, ...] = ()


async def see_collisions(store: Store, runs: Sequence[Run]) -> list[RunsCollide]:
    """What the radar saw between those of the runs that have not ended, each pair once."""
    live = {run.id for run in runs if not run.status.ended}
    if len(live) < 2:
        return []
    query = EventQuery(types=("collision_seen",), limit=10_000)
    seen = await store.read(lambda view: view.events(query))
    if not seen:
        return []
    # Late: with the first event all classes of events are loaded.
    from podium.domain.events import CollisionSeen

    found: dict[frozenset[str], RunsCollide] = {}
    for event in seen:
        body = event.body
        if isinstance(body, CollisionSeen) and {event.run_id, body.other_run} <= live:
            pair = frozenset((event.run_id, body.other_run))
            found[pair] = RunsCollide(run=event.run_id, other=body.other_run, paths=body.paths)
    return list(found.values())
