"""All that is at work, looked at again and again at little cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from podium.domain.events import (
    Event,
    RunStarted,
    StepBroke,
    StepCompleted,
    StepStarted,
    UsageRecorded,
)
from podium.domain.model import Moment, Noun
from podium.domain.spending import usage_counter
from podium.domain.work import QueueSpec, Run, RunStatus
from podium.ports import Engine, EventQuery, RunQuery, Store, View
from podium.usecases.see_queues import QueueSeen, queues_in
from podium.usecases.see_workers import WorkerSeen, seen_among

MOST_RUNS = 100
"""Running runs that are looked at, newest first."""
MOST_EVENTS = 1000
"""Events read for one look. When there are more, what was missed is looked up run by run."""
LOOKED_UP = 3
"""Runs that one look, but for the first, learns anew."""
TAIL = 50
"""Events at the end of a run among which its step is looked for."""

_TOLD_BY = ("run_started", "step_started", "step_completed", "step_broke", "usage_recorded")
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class RunSeen(Noun):
    """A run at work."""

    run_id: str
    flow: str
    task: str
    queue: str | None = None
    owner: str | None = None
    hosted: bool
    """Whether its owner is alive."""
    since: Moment | None = None
    step: str = ""
    """The step that began last and has not ended; empty: between steps, or not known yet."""
    step_since: Moment | None = None
    usd: float | None = None
    """What it has cost so far. None: not known yet."""


class WorkSeen(Noun):
    """Workers, queues and running runs at one moment."""

    at: Moment
    workers: tuple[WorkerSeen, ...] = ()
    queues: tuple[QueueSeen, ...] = ()
    runs: tuple[RunSeen, ...] = ()
    more_runs: bool = False
    """Whether more runs are running than are shown."""


@dataclass
class _Doing:
    """What is known of a run from its events."""

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
        most_runs: int = MOST_RUNS,
    ) -> None:
        self._store = store
        self._engine = engine
        self._specs = specs
        self._most_runs = most_runs
        self._after: int | None = None
        """The position behind which events are new. None: nothing was looked at yet."""
        self._doing: dict[str, _Doing] = {}

    async def look(self) -> WorkSeen:
        """How it all stands now. One look at a time."""
        alive = await (await self._engine()).alive()
        return await self._store.read(lambda view: self._look(view, alive))

    def _look(self, view: View, alive: Collection[str]) -> WorkSeen:
        found = view.runs(RunQuery(statuses=(RunStatus.RUNNING,), limit=self._most_runs + 1))
        runs = found[: self._most_runs]
        self._learn(view, runs)
        beats = view.workers()
        living = [beat for beat in beats if beat.id in alive]
        return WorkSeen(
            at=view.now(),
            workers=tuple(seen_among(beats, alive, runs)),
            queues=tuple(queues_in(view, living, self._specs)),
            runs=tuple(self._seen(run, run.owner in alive) for run in runs),
            more_runs=len(found) > len(runs),
        )

    def _learn(self, view: View, runs: Sequence[Run]) -> None:
        """Bring what is known of these runs up to date, and forget the others."""
        first = self._after is None
        self._follow(view)
        unknown = [run.id for run in runs if run.id not in self._doing]
        for run_id in unknown if first else unknown[:LOOKED_UP]:
            self._doing[run_id] = _looked_up(view, run_id)
        running = {run.id for run in runs}
        self._doing = {key: doing for key, doing in self._doing.items() if key in running}

    def _follow(self, view: View) -> None:
        after, last = self._after, view.last_position()
        query = EventQuery(after_position=after or 0, types=_TOLD_BY, limit=MOST_EVENTS)
        events = view.events(query) if after is not None else []
        # From here on nothing is read: a look that is made again after a lost connection goes on here.
        self._after = last
        if len(events) == MOST_EVENTS:
            self._doing.clear()
            return
        for event in events:
            if isinstance(event.body, RunStarted) and event.body.fence == 1:
                self._doing[event.run_id] = _Doing()
            elif event.run_id in self._doing:
                self._doing[event.run_id].hear(event)

    def _seen(self, run: Run, hosted: bool) -> RunSeen:
        doing = self._doing.get(run.id)
        step, step_since = next(reversed(doing.steps.items()) if doing else iter(()), ("", None))
        return RunSeen(
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


def _looked_up(view: View, run_id: str) -> _Doing:
    """What the last events of a run, and the counter of what it used, tell of it."""
    after = max(0, view.last_seq(run_id) - TAIL)
    doing = _Doing()
    counter = usage_counter("usd", "run", run_id, "", view.now())
    for event in view.events(EventQuery(run_id=run_id, after_seq=after, types=_TOLD_BY)):
        doing.hear(event)
    doing.usd = view.counted(counter, _BEGINNING)
    return doing
