"""Who is at work: the processes that host runs, what each holds, and what the dead left behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from podium.domain.ids import short_id
from podium.domain.model import Moment, Noun
from podium.domain.work import Run, RunStatus, WorkerBeat
from podium.ports import Engine, RunQuery, Store, View

HELD = (RunStatus.RUNNING, RunStatus.WAITING)
MOST_HELD = 10_000
"""So many of the runs that are not at an end are looked at, newest first."""


class Held(Noun):
    """A run that somebody owns."""

    run_id: str
    flow: str
    task: str
    status: RunStatus
    queue: str | None = None
    pinned_to: str | None = None
    since: Moment | None = None
    """When its owner took it."""
    next: str = ""
    """What becomes of it when its owner is dead."""


class WorkerSeen(Noun):
    """A process that hosts runs, or one that is gone and still owns some."""

    id: str
    alive: bool
    beat: WorkerBeat | None = None
    """None: it said goodbye, or its beat was cleared away."""
    holds: tuple[Held, ...] = ()


class WorkersSeen(Noun):
    """All of them at one moment."""

    at: Moment
    workers: tuple[WorkerSeen, ...] = ()


async def see_workers(store: Store, engine: Callable[[], Awaitable[Engine]]) -> WorkersSeen:
    """Those alive, and those of the dead that still own runs."""
    alive = await (await engine()).alive()

    def look(view: View) -> WorkersSeen:
        held = view.runs(RunQuery(statuses=HELD, limit=MOST_HELD))
        return WorkersSeen(at=view.now(), workers=tuple(seen_among(view.workers(), alive, held)))

    return await store.read(look)


def seen_among(
    beats: Sequence[WorkerBeat], alive: Collection[str], runs: Iterable[Run]
) -> list[WorkerSeen]:
    """The living by host and age, then the dead that own one of these runs."""
    by_id = {beat.id: beat for beat in beats}
    served = {queue for beat in beats if beat.id in alive for queue in beat.queues}
    owned: dict[str, list[Run]] = {}
    for run in runs:
        if run.owner is not None:
            owned.setdefault(run.owner, []).append(run)
    living = [
        WorkerSeen(
            id=beat.id, alive=True, beat=beat, holds=tuple(map(_held, owned.get(beat.id, ())))
        )
        for beat in sorted(beats, key=lambda beat: (beat.host, beat.started_at, beat.id))
        if beat.id in alive
    ]
    dead = [
        WorkerSeen(
            id=owner,
            alive=False,
            beat=by_id.get(owner),
            holds=tuple(_held(run, _next(run, served)) for run in runs_of_it),
        )
        for owner, runs_of_it in sorted(owned.items())
        if owner not in alive
    ]
    return living + dead


def _held(run: Run, next_: str = "") -> Held:
    return Held(
        run_id=run.id,
        flow=run.flow,
        task=run.task,
        status=run.status,
        queue=run.queue,
        pinned_to=run.pinned_to,
        since=run.claimed_at,
        next=next_,
    )


def _next(run: Run, served: Collection[str]) -> str:
    begun = f", on {run.pinned_to} where it began if that is there" if run.pinned_to else ""
    if run.queue is None:
        return f"`podium resume {short_id(run.id)}` goes on with it"
    if run.queue in served:
        return f"a worker of queue `{run.queue}` takes it over{begun}"
    return f"the next worker of queue `{run.queue}` takes it over{begun}; nobody serves that now"
