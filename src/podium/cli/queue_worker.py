"""Worker of queues, for `podium worker` and `podium serve`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from functools import partial

from podium.app.app import Podium
from podium.app.work_request import answered_queue
from podium.cli.progress import Progress
from podium.core.errors import BadInput
from podium.core.events import Event, RunStarted
from podium.core.ids import short_id
from podium.core.job import load_parts
from podium.core.model import Json
from podium.core.work import QueueSpec, Run, RunStatus
from podium.engine.run_engine import ticking
from podium.ports import EventQuery, RunQuery, Store, StoreView
from podium.render.event import event_line
from podium.telemetry.event_feed import ListenerThread

UNFINISHED = (RunStatus.QUEUED, RunStatus.RUNNING)
MAX_WAITING = 10_000
MAX_EVENTS = 1_000
SOON = timedelta(minutes=1)
"""Longest wait for a timer of the sense loop: a candidate over its quota sleeps for an hour."""
LOOK_SECONDS = 1.0


class WorkerTask(AbstractAsyncContextManager["WorkerTask"]):
    """Task of a worker for one job besides hosting runs, while it is open. The base does nothing."""

    brief_queues: frozenset[str] = frozenset()
    """Queues whose distant timers a worker with `--once` does not wait for."""

    def __init__(
        self,
        podium: Podium,
        queues: Sequence[QueueSpec],
        notify: Callable[[str], None],
        *,
        position: int,
        once: bool,
    ) -> None:
        """`position` is that of the last event before the worker began."""
        self.podium, self.queues, self.notify = podium, queues, notify
        self.position, self.once = position, once

    async def __aexit__(self, *error: object) -> None:
        return None

    async def take_more(self) -> int:
        """Start work that arrived meanwhile; return how much."""
        return 0

    @staticmethod
    def facts(run: Run) -> Mapping[str, Json]:
        """Return facts about a run of this job for the worker's answer, besides id and status."""
        return {}


def worker_tasks() -> Iterator[type[WorkerTask]]:
    """Yield the worker tasks of all jobs."""
    return (kind for _, kind in load_parts("worker"))


def select_queues(
    configured: Sequence[QueueSpec], names: Sequence[str], labels: Sequence[str]
) -> list[QueueSpec]:
    specs = {queue.name: queue for queue in configured}
    unknown = [name for name in names if name not in specs]
    if unknown:
        raise BadInput(
            f"podium.yaml has no queue {unknown[0]!r}; queues: {', '.join(sorted(specs))}"
        )
    if names:
        return [specs[name] for name in names]
    fitting = [queue for queue in specs.values() if set(queue.labels) <= set(labels)]
    if not fitting:
        labels_by_queue = "; ".join(
            f"{name}: {','.join(spec.labels)}" for name, spec in specs.items()
        )
        raise BadInput(
            f"every queue needs labels that this worker does not offer ({labels_by_queue})"
        )
    return fitting


async def serve_queues(
    podium: Podium,
    queues: Sequence[QueueSpec],
    on_serving: Callable[[], None],
    log: Callable[[str], None],
    *,
    once: bool,
) -> list[Run]:
    """Serve queues. With `once`, return the runs it worked on when nothing is left to do."""
    engine, store = await podium.hosting_engine(), await podium.store()
    await podium.load_flows()
    position = await store.read(lambda view: view.last_position())
    hosted = _Hosted(store, engine.worker_id, position)
    async with (
        _log(store, position, log),
        engine.serve(queues, answered_queue=answered_queue(podium.configuration, queues)),
        AsyncExitStack() as stack,
    ):
        tasks = [
            await stack.enter_async_context(task(podium, queues, log, position=position, once=once))
            for task in worker_tasks()
        ]
        on_serving()
        # A full disk changes nothing in the store.
        async for _ in ticking(store.changes(), LOOK_SECONDS) if once else store.changes():
            # Before the look at the queues: the last run may end between the two, and then nothing is left to do.
            full = engine.disk_full_error() if once else None
            idle = await hosted.catch_up(queues if once else ())
            if once and idle and not sum([await task.take_more() for task in tasks]):
                return await store.read(lambda view: _served(view, hosted.runs))
            if full is not None and not idle:
                raise full
    raise AssertionError("changes end only when the store is closed")


@asynccontextmanager
async def _log(store: Store, position: int, log: Callable[[str], None]) -> AsyncIterator[None]:
    """Print every event while open. A slow reader holds up no run."""
    with Progress(sys.stderr) as progress:
        after = EventQuery(after_position=position)
        listening = ListenerThread(
            store, after, partial(_print_event, progress), name="the worker's log"
        )
        try:
            yield
        finally:
            await listening.close()
    for problem in listening.problems:
        log(f"podium: {problem}")


def _print_event(progress: Progress, event: Event) -> None:
    # Runs take turns here, so every line says whose it is.
    run = f"{short_id(event.run_id)} "
    width = progress.width
    progress.line(run + event_line(event, width and max(width - len(run), 1)))


class _Hosted:
    """Tracks the runs this worker took."""

    def __init__(self, store: Store, worker_id: str, position: int) -> None:
        self._store = store
        self._worker_id = worker_id
        self._position = position
        self.runs: set[str] = set()

    async def catch_up(self, queues: Sequence[QueueSpec]) -> bool:
        """Read all new events. Returns True when these queues are idle after them."""
        while True:
            after = EventQuery(
                types=("run_started",), after_position=self._position, limit=MAX_EVENTS
            )
            # Of one moment: no run that was taken is left out.
            events, idle = await self._store.read(partial(_look, after, queues))
            for event in events:
                self._position = event.position
                if isinstance(event.body, RunStarted) and event.body.owner == self._worker_id:
                    self.runs.add(event.run_id)
            if len(events) < MAX_EVENTS:
                return idle


def _served(view: StoreView, hosted: set[str]) -> list[Run]:
    runs = (view.run(run_id) for run_id in sorted(hosted))
    return [run for run in runs if run is not None]


def _look(
    query: EventQuery, queues: Sequence[QueueSpec], view: StoreView
) -> tuple[list[Event], bool]:
    return view.events(query), _idle(view, queues)


def _idle(view: StoreView, queues: Sequence[QueueSpec]) -> bool:
    """True when nothing continues by itself: sleeping runs do, runs waiting for a person do not."""
    return not any(
        view.runs(RunQuery(queue=queue.name, statuses=UNFINISHED, limit=1)) or _sleeps(view, queue)
        for queue in queues
    )


def _sleeps(view: StoreView, queue: QueueSpec) -> bool:
    waiting = RunQuery(queue=queue.name, statuses=(RunStatus.WAITING,), limit=MAX_WAITING)
    is_brief = any(queue.name in task.brief_queues for task in worker_tasks())
    far = view.now() + SOON if is_brief else None
    return any(run.only_sleeps and _wakes_before(run, far) for run in view.runs(waiting))


def _wakes_before(run: Run, far: datetime | None) -> bool:
    return far is None or run.wake_at is None or run.wake_at <= far
