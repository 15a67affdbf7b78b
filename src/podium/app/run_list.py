"""Lists of runs, newest first, with their true status and the collisions between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum

from podium.core.model import FrozenModel, Json
from podium.core.work import Run, RunStatus
from podium.ports import Engine, EventQuery, RunQuery, Store

INTERRUPTED = "interrupted"
"""What a run is called that is stored as running and that nobody alive hosts."""


class ShownStatus(StrEnum):
    """How a run can stand, as people are shown it."""

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


class Standing(FrozenModel):
    """A run, and whether somebody alive hosts it."""

    run: Run
    hosted: bool

    @classmethod
    def among(cls, run: Run, alive: Collection[str]) -> Standing:
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
        stands = {"shown_status": self.shown_status, "hosted": self.hosted}
        return {**self.run.model_dump(mode="json"), **stands}


async def list_runs(store: Store, query: RunQuery | None = None) -> list[Run]:
    """The runs that fit, newest first."""
    wanted = query or RunQuery()
    return await store.read(lambda view: view.runs(wanted))


async def list_standings(
    store: Store,
    engine: Callable[[], Awaitable[Engine]],
    statuses: Sequence[str] = (),
    *,
    flow: str | None = None,
    limit: int = 20,
) -> list[Standing]:
    """Runs that stand in one of the shown `statuses`, newest first. No statuses: all runs."""
    stored = {RunStatus.RUNNING if each == INTERRUPTED else RunStatus(each) for each in statuses}
    # Whether one of these is hosted is not stored, so it cannot be asked for.
    most = max(limit, MAX_RUNNING) if RunStatus.RUNNING in stored else limit
    query = RunQuery(statuses=tuple(sorted(stored)), flow=flow, limit=most)
    found = await how_they_stand(await list_runs(store, query), engine)
    return [each for each in found if not statuses or each.shown_status in statuses][:limit]


async def how_they_stand(
    runs: Sequence[Run], engine: Callable[[], Awaitable[Engine]]
) -> list[Standing]:
    """The same runs with how they stand. The engine is made only when one of them has an owner."""
    owned = [run.id for run in runs if run.owner is not None and not run.status.ended]
    hosted = await (await engine()).hosted(owned) if owned else set()
    return [Standing(run=run, hosted=run.id in hosted) for run in runs]


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
