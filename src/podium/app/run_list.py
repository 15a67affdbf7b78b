"""Lists of runs, newest first, with their true status and the collisions between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum

from podium.core.model import FrozenModel, Json
from podium.core.work import Run, RunStatus
from podium.ports import Engine, EventQuery, RunQuery, Store

INTERRUPTED = "interrupted"
"""Status shown for a run that is stored as running and has no living host."""


class ShownStatus(StrEnum):
    """Status of a run as shown to people."""

    QUEUED = "queued"
    RUNNING = "running"
    INTERRUPTED = INTERRUPTED
    WAITING = "waiting"
    NEEDS_HUMAN = "needs_human"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


MAX_RUNNING = 10_000
"""So many of the runs that are stored as running are looked at to tell who is hosted."""


class RunListing(FrozenModel):
    """A run, and whether somebody alive hosts it."""

    run: Run
    hosted: bool

    @classmethod
    def among(cls, run: Run, alive: Collection[str]) -> RunListing:
        """The run, where `alive` are the ids of the workers that are."""
        return cls(run=run, hosted=not run.status.ended and run.owner in alive)

    @property
    def interrupted(self) -> bool:
        return self.run.status is RunStatus.RUNNING and not self.hosted

    @property
    def shown_status(self) -> str:
        """The status as it is shown to people."""
        return INTERRUPTED if self.interrupted else self.run.status.value

    def record(self) -> dict[str, Json]:
        """The run as JSON, with how it stands."""
        status = {"shown_status": self.shown_status, "hosted": self.hosted}
        return {**self.run.model_dump(mode="json"), **status}


async def list_runs(store: Store, query: RunQuery | None = None) -> list[Run]:
    """The runs that fit, newest first."""
    criteria = query or RunQuery()
    return await store.read(lambda view: view.runs(criteria))


async def list_by_status(
    store: Store,
    engine: Callable[[], Awaitable[Engine]],
    statuses: Sequence[str] = (),
    *,
    flow: str | None = None,
    limit: int = 20,
) -> list[RunListing]:
    """Runs that stand in one of the shown `statuses`, newest first. No statuses: all runs."""
    stored = {
        RunStatus.RUNNING if status == INTERRUPTED else RunStatus(status) for status in statuses
    }
    # Whether one of these is hosted is not stored, so it cannot be asked for.
    most = max(limit, MAX_RUNNING) if RunStatus.RUNNING in stored else limit
    query = RunQuery(statuses=tuple(sorted(stored)), flow=flow, limit=most)
    listings = await with_host_status(await list_runs(store, query), engine)
    return [listing for listing in listings if not statuses or listing.shown_status in statuses][
        :limit
    ]


async def with_host_status(
    runs: Sequence[Run], engine: Callable[[], Awaitable[Engine]]
) -> list[RunListing]:
    """The same runs with how they stand. The engine is made only when one of them has an owner."""
    owned = [run.id for run in runs if run.owner is not None and not run.status.ended]
    hosted = await (await engine()).hosted(owned) if owned else set()
    return [RunListing(run=run, hosted=run.id in hosted) for run in runs]


class RunCollision(FrozenModel):
    """Two live runs that change the same lines."""

    run: str
    other: str
    paths: tuple[str, ...] = ()


async def find_collisions(store: Store, runs: Sequence[Run]) -> list[RunCollision]:
    """Return the recorded conflict forecasts between those of the runs that have not ended, each pair once."""
    live = {run.id for run in runs if not run.status.ended}
    if len(live) < 2:
        return []
    query = EventQuery(types=("collision_seen",), limit=10_000)
    events = await store.read(lambda view: view.events(query))
    if not events:
        return []
    # Late: with the first event all classes of events are loaded.
    from podium.core.events import BranchCollision

    collisions: dict[frozenset[str], RunCollision] = {}
    for event in events:
        body = event.body
        if isinstance(body, BranchCollision) and {event.run_id, body.other_run} <= live:
            pair = frozenset((event.run_id, body.other_run))
            collisions[pair] = RunCollision(
                run=event.run_id, other=body.other_run, paths=body.paths
            )
    return list(collisions.values())
