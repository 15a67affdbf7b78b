"""Workload: queues, the workers that serve them, what each holds, and cheap repeated snapshots."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from podium.core.decisions import usage_counter
from podium.core.events import (
    Event,
    RunStarted,
    StepBroke,
    StepCompleted,
    StepStarted,
    UsageRecorded,
)
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json, UtcDatetime
from podium.core.work import QueueCounts, QueueSpec, Run, RunStatus, WorkerHeartbeat
from podium.ports import Engine, EventQuery, RunQuery, Store, StoreView

HELD = (RunStatus.RUNNING, RunStatus.WAITING)
MAX_HELD = 10_000
"""So many of the runs that are not at an end are looked at, newest first."""


class Held(FrozenModel):
    """A run that a process owns."""

    run_id: str
    flow: str
    task: str
    status: RunStatus
    queue: str | None = None
    pinned_to: str | None = None
    since: UtcDatetime | None = None
    """Time at which its owner took it."""
    next: str = ""
    """Next step when its owner is dead."""


class WorkerSeen(FrozenModel):
    """A process that hosts runs, or one that is gone and still owns some."""

    id: str
    alive: bool
    beat: WorkerHeartbeat | None = None
    """None: it said goodbye, or its beat was cleared away."""
    holds: tuple[Held, ...] = ()


class WorkersSeen(FrozenModel):
    """All of them at one moment."""

    at: UtcDatetime
    workers: tuple[WorkerSeen, ...] = ()


async def see_workers(store: Store, engine: Callable[[], Awaitable[Engine]]) -> WorkersSeen:
    """Those alive, and those of the dead that still own runs."""
    alive = await (await engine()).alive()

    def look(view: StoreView) -> WorkersSeen:
        held = view.runs(RunQuery(statuses=HELD, limit=MAX_HELD))
        return WorkersSeen(at=view.now(), workers=tuple(workers_among(view.workers(), alive, held)))

    return await store.read(look)


def workers_among(
    heartbeats: Sequence[WorkerHeartbeat], alive: Collection[str], runs: Iterable[Run]
) -> list[WorkerSeen]:
    """The living by host and age, then the dead that own one of these runs."""
    by_id = {heartbeat.id: heartbeat for heartbeat in heartbeats}
    served = {
        queue for heartbeat in heartbeats if heartbeat.id in alive for queue in heartbeat.queues
    }
    owned: dict[str, list[Run]] = {}
    for run in runs:
        if run.owner is not None:
            owned.setdefault(run.owner, []).append(run)
    living = [
        WorkerSeen(
            id=heartbeat.id,
            alive=True,
            beat=heartbeat,
            holds=tuple(map(_held, owned.get(heartbeat.id, ()))),
        )
        for heartbeat in sorted(
            heartbeats, key=lambda heartbeat: (heartbeat.host, heartbeat.started_at, heartbeat.id)
        )
        if heartbeat.id in alive
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
    begun = f", on {run.pinned_to} where it started if that is up" if run.pinned_to else ""
    if run.queue is None:
        return f"`podium resume {short_id(run.id)}` continues it"
    if run.queue in served:
        return f"a worker of queue `{run.queue}` takes it over{begun}"
    return f"the next worker of queue `{run.queue}` takes it over{begun}; none is running now"


LATELY = timedelta(minutes=1)
"""The time over which ends are counted."""


class QueueSeen(FrozenModel):
    """A queue that is configured, or that has runs."""

    spec: QueueSpec
    configured: bool
    """The settings name it. If not, `spec` holds the defaults."""
    tally: QueueCounts
    ended_lately: int = 0
    """Runs that ended within the last minute."""
    served_by: tuple[str, ...] = ()
    """Ids of the workers alive that serve it and offer what it wants."""
    trouble: str = ""
    """Reason why nothing runs in it, with the remedy."""

    @property
    def name(self) -> str:
        return self.spec.name

    def record(self) -> dict[str, Json]:
        """Flat, as JSON answers have it."""
        tally = self.tally.model_dump(mode="json", exclude={"queue"})
        others = {"configured", "ended_lately", "served_by", "trouble"}
        return {
            **self.spec.model_dump(mode="json"),
            **tally,
            **self.model_dump(mode="json", include=others),
        }


class QueuesSeen(FrozenModel):
    """All of them at one moment."""

    at: UtcDatetime
    queues: tuple[QueueSeen, ...] = ()


async def see_queues(
    store: Store, engine: Callable[[], Awaitable[Engine]], specs: Sequence[QueueSpec]
) -> QueuesSeen:
    """Every queue of the settings, in their order, and then every other that has runs."""
    alive = await (await engine()).alive()

    def look(view: StoreView) -> QueuesSeen:
        heartbeats = [heartbeat for heartbeat in view.workers() if heartbeat.id in alive]
        return QueuesSeen(at=view.now(), queues=tuple(queues_in(view, heartbeats, specs)))

    return await store.read(look)


def queues_in(
    view: StoreView, living: Sequence[WorkerHeartbeat], specs: Sequence[QueueSpec]
) -> list[QueueSeen]:
    """The queues as one view has them, with those alive who serve them."""
    tallies = {tally.queue: tally for tally in view.tallies()}
    ended = view.ended_since(view.now() - LATELY)
    configured = {spec.name: spec for spec in specs}
    others = sorted((tallies.keys() | ended.keys()) - configured.keys())
    return [
        _queue_status(
            configured.get(name) or QueueSpec(name=name),
            tallies.get(name) or QueueCounts(queue=name),
            ended.get(name, 0),
            living,
            configured=name in configured,
        )
        for name in (*configured, *others)
    ]


def _queue_status(
    spec: QueueSpec,
    tally: QueueCounts,
    ended: int,
    living: Sequence[WorkerHeartbeat],
    *,
    configured: bool,
) -> QueueSeen:
    serving = tuple(heartbeat.id for heartbeat in living if _serves(heartbeat, spec))
    needs_somebody = tally.queued + tally.delayed + tally.running + tally.waiting > 0
    return QueueSeen(
        spec=spec,
        configured=configured,
        tally=tally,
        ended_lately=ended,
        served_by=serving,
        trouble=_nobody(spec, configured) if needs_somebody and not serving else "",
    )


def _serves(heartbeat: WorkerHeartbeat, spec: QueueSpec) -> bool:
    return spec.name in heartbeat.queues and _offers(heartbeat.labels, spec.labels)


def _offers(offered: Collection[str], required: Collection[str]) -> bool:
    return set(required) <= set(offered)


def _nobody(spec: QueueSpec, configured: bool) -> str:
    labels = f" --label {shlex.quote(','.join(spec.labels))}" if spec.labels else ""
    start = f"start `podium worker --queue {shlex.quote(spec.name)}{labels}`"
    if not configured:
        start = f"add it under `queues:` in podium.yaml and {start}"
    return f"no worker is running for `{spec.name}`: {start}"


MAX_RUNS = 100
"""Running runs that are looked at, newest first."""
MAX_EVENTS = 1000
"""Events read for one look. When there are more, what was missed is looked up run by run."""
LOOKED_UP = 3
"""Runs that one look, but for the first, learns anew."""
TAIL = 50
"""Events at the end of a run among which its step is looked for."""

_TYPES = ("run_started", "step_started", "step_completed", "step_broke", "usage_recorded")
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class RunningRun(FrozenModel):
    """A run at work."""

    run_id: str
    flow: str
    task: str
    queue: str | None = None
    owner: str | None = None
    hosted: bool
    """Its owner is alive."""
    since: UtcDatetime | None = None
    step: str = ""
    """The step that began last and has not ended; empty: between steps, or not known yet."""
    step_since: UtcDatetime | None = None
    usd: float | None = None
    """Cost so far. None: not known yet."""


class WorkloadSnapshot(FrozenModel):
    """Workers, queues and running runs at one moment."""

    at: UtcDatetime
    workers: tuple[WorkerSeen, ...] = ()
    queues: tuple[QueueSeen, ...] = ()
    runs: tuple[RunningRun, ...] = ()
    more_runs: bool = False
    """More runs are running than listed."""


@dataclass
class _Doing:
    """State of a run from its events."""

    steps: dict[str, datetime] = field(default_factory=dict)
    """Steps that have begun and not ended, the last one last."""
    usd: float = 0.0

    def hear(self, event: Event) -> None:
        match event.body:
            case RunStarted():
                self.steps.clear()
            case StepStarted(step=step):
                self.steps.pop(step, None)
                self.steps[step] = event.at
            case StepCompleted(step=step) | StepBroke(step=step):
                self.steps.pop(step, None)
            case UsageRecorded(usage=usage):
                self.usd += usage.usd
            case _:
                return


class WorkWatch:
    """Looks at one store. It learns from new events, so that a look costs a handful of queries."""

    def __init__(
        self,
        store: Store,
        engine: Callable[[], Awaitable[Engine]],
        specs: Sequence[QueueSpec],
        *,
        most_runs: int = MAX_RUNS,
    ) -> None:
        self._store = store
        self._engine = engine
        self._specs = specs
        self._most_runs = most_runs
        self._after: int | None = None
        """The position behind which events are new. None: nothing was looked at yet."""
        self._doing: dict[str, _Doing] = {}

    async def look(self) -> WorkloadSnapshot:
        """Take a snapshot. One at a time."""
        alive = await (await self._engine()).alive()
        return await self._store.read(lambda view: self._look(view, alive))

    def _look(self, view: StoreView, alive: Collection[str]) -> WorkloadSnapshot:
        running = view.runs(RunQuery(statuses=(RunStatus.RUNNING,), limit=self._most_runs + 1))
        runs = running[: self._most_runs]
        self._learn(view, runs)
        heartbeats = view.workers()
        living = [heartbeat for heartbeat in heartbeats if heartbeat.id in alive]
        return WorkloadSnapshot(
            at=view.now(),
            workers=tuple(workers_among(heartbeats, alive, runs)),
            queues=tuple(queues_in(view, living, self._specs)),
            runs=tuple(self._running_run(run, run.owner in alive) for run in runs),
            more_runs=len(running) > len(runs),
        )

    def _learn(self, view: StoreView, runs: Sequence[Run]) -> None:
        """Bring what is known of these runs up to date, and forget the others."""
        first = self._after is None
        self._follow(view)
        unknown = [run.id for run in runs if run.id not in self._doing]
        for run_id in unknown if first else unknown[:LOOKED_UP]:
            self._doing[run_id] = _looked_up(view, run_id)
        running = {run.id for run in runs}
        self._doing = {key: doing for key, doing in self._doing.items() if key in running}

    def _follow(self, view: StoreView) -> None:
        after, last = self._after, view.last_position()
        query = EventQuery(after_position=after or 0, types=_TYPES, limit=MAX_EVENTS)
        events = view.events(query) if after is not None else []
        # From here on nothing is read: a look that is made again after a lost connection goes on here.
        self._after = last
        if len(events) == MAX_EVENTS:
            self._doing.clear()
            return
        for event in events:
            if isinstance(event.body, RunStarted) and event.body.fence == 1:
                self._doing[event.run_id] = _Doing()
            elif event.run_id in self._doing:
                self._doing[event.run_id].hear(event)

    def _running_run(self, run: Run, hosted: bool) -> RunningRun:
        doing = self._doing.get(run.id)
        step, step_since = next(reversed(doing.steps.items()) if doing else iter(()), ("", None))
        return RunningRun(
            run_id=run.id,
            flow=run.flow,
            task=run.task,
            queue=run.queue,
            owner=run.owner,
            hosted=hosted,
            since=run.claimed_at,
            step=step,
            step_since=step_since,
            usd=doing.usd if doing else None,
        )


def _looked_up(view: StoreView, run_id: str) -> _Doing:
    """State of a run from its last events and its usage counter."""
    after = max(0, view.last_seq(run_id) - TAIL)
    doing = _Doing()
    counter = usage_counter("usd", "run", run_id, "", view.now())
    for event in view.events(EventQuery(run_id=run_id, after_seq=after, types=_TYPES)):
        doing.hear(event)
    doing.usd = view.counted(counter, _BEGINNING)
    return doing
