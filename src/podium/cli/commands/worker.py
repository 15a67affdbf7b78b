"""`podium worker`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.commands.queues import queue_specs
from podium.cli.door import Door
from podium.cli.progress import Progress
from podium.cli.sense_tending import tended
from podium.domain.errors import BadInput
from podium.domain.events import Event, RunStarted
from podium.domain.ids import short_id
from podium.domain.model import Json
from podium.domain.work import QueueSpec, Run, RunStatus
from podium.flows.sense.kit import CANDIDATE, ORDERS, SENSE, WORK_ORDER
from podium.journal.listening import Listening
from podium.ports import EventQuery, RunQuery, Store, View
from podium.telling.event_words import event_line
from podium.telling.untrusted import shown_line
from podium.wiring import Podium

app = command_app()

UNFINISHED = (RunStatus.QUEUED, RunStatus.RUNNING)
MOST_WAITING = 10_000
MOST_EVENTS = 1_000
SOON = timedelta(minutes=1)
"""A timer of the loop that rings later is not waited for: a candidate over its quota sleeps for an hour."""
LOOP_QUEUES = (ORDERS, SENSE)
LONGEST_REASON = 500
FAILED, WAITS = 1, 3


@app.command()
def worker(
    context: typer.Context,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="Serve this queue only; may be repeated."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="LABEL",
            help="What this worker offers to queues that ask for it, such as gpu or repo=app; "
            "several by commas or repeated.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            metavar="N",
            min=1,
            help="Work on at most N runs of each queue at once, instead of what podium.yaml says.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="ADDRESS",
            help="Show Prometheus metrics at this address, such as 127.0.0.1:9464.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Leave when nothing goes on by itself any more.")
    ] = False,
) -> None:
    """Host the runs of this project's queues, perform its work orders, and fire its schedules, until Ctrl-C.

    Any number of workers may serve one project, on one machine or, with a PostgreSQL in
    PODIUM_DATABASE_URL, on many; limits hold over all of them. Runs of a worker that died are taken
    over. Without --queue it serves every queue whose labels it has.

    Queue orders is the inbox: every file in bridge/inbox/CLC is performed operation by operation
    through the gate, answered in bridge/outbox/LIAM and put away. Queue sense delivers what the
    sense loop proposed and people approved. With --once neither is waited for longer than a minute.

    With --once it leaves with 1 when a run that it worked on failed or was cancelled, with 3 when one
    waits for a person, else with 0.

    \b
    Example:
      podium worker --queue default --once
      podium worker --queue orders --once
      podium worker --label gpu,repo=app --concurrency 8 --metrics 127.0.0.1:9464
    """
    labels = tuple(dict.fromkeys(_split(label or [])))
    door = Door(context.obj)
    door.options.labels = labels
    queues = _wanted(queue_specs(door), queue or [], labels)
    if concurrency is not None:
        queues = [each.model_copy(update={"worker_concurrency": concurrency}) for each in queues]
    door.options.ending_words = "ending processes; every run stays at its checkpoint"
    door.options.parting_words = "every run stays at its checkpoint, for the next worker"

    def tell_serving() -> None:
        names = ", ".join(each.name for each in queues)
        door.screen.aside(f"serving {names}; Ctrl-C leaves every run at its checkpoint")

    async def work(podium: Podium) -> list[Run]:
        if metrics is None:
            return await _serve(podium, queues, tell_serving, door.screen.aside, once=once)
        from podium.cli.metrics_page import metrics_page

        async with metrics_page(podium, metrics) as url:
            door.screen.aside(f"metrics at {url}")
            return await _serve(podium, queues, tell_serving, door.screen.aside, once=once)

    served = door.run(work)
    record = {"queues": [each.name for each in queues], "runs": [_told(run) for run in served]}
    door.screen.answer(record, lambda: None)
    if code := _exit_code(served):
        raise typer.Exit(code)


def _split(given: Sequence[str]) -> list[str]:
    return [label.strip() for each in given for label in each.split(",") if label.strip()]


def _wanted(
    known: Sequence[QueueSpec], names: Sequence[str], labels: Sequence[str]
) -> list[QueueSpec]:
    specs = {queue.name: queue for queue in known}
    unknown = [name for name in names if name not in specs]
    if unknown:
        raise BadInput(
            f"podium.yaml has no queue {unknown[0]!r}; queues: {', '.join(sorted(specs))}"
        )
    if names:
        return [specs[name] for name in names]
    fitting = [queue for queue in specs.values() if set(queue.labels) <= set(labels)]
    if not fitting:
        wanted = "; ".join(f"{name}: {','.join(spec.labels)}" for name, spec in specs.items())
        raise BadInput(f"every queue wants labels that this worker does not offer ({wanted})")
    return fitting


async def _serve(
    podium: Podium,
    queues: Sequence[QueueSpec],
    tell_serving: Callable[[], None],
    tell: Callable[[str], None],
    *,
    once: bool,
) -> list[Run]:
    """The runs that ended or stopped meanwhile, when nothing is left to do."""
    engine, store = await podium.hosting_engine(), await podium.store()
    seen = await store.read(lambda view: view.last_position())
    hosted = _Hosted(store, engine.worker_id, seen)
    async with (
        _log(store, seen, tell),
        engine.serve(queues),
        tended(podium, queues, tell, once=once) as take_more,
    ):
        tell_serving()
        async for _ in store.changes():
            idle = await hosted.catch_up(queues if once else ())
            if once and idle and not await take_more():
                return await store.read(lambda view: _served(view, hosted.runs))
    raise AssertionError("changes end only when the store is closed")


@asynccontextmanager
async def _log(store: Store, seen: int, tell: Callable[[str], None]) -> AsyncIterator[None]:
    """While open, every event is told. Whoever reads that slowly, or not at all, holds up no run."""
    with Progress(sys.stderr) as progress:
        after = EventQuery(after_position=seen)
        listening = Listening(store, after, partial(_tell, progress), name="the worker's log")
        try:
            yield
        finally:
            await listening.close()
    for fault in listening.faults:
        tell(f"podium: {fault}")


def _tell(progress: Progress, event: Event) -> None:
    # Runs take turns here, so every line says whose it is.
    run = f"{short_id(event.run_id)} "
    width = progress.width
    progress.line(run + event_line(event, width and max(width - len(run), 1)))


class _Hosted:
    """Remembers which runs this worker took."""

    def __init__(self, store: Store, worker_id: str, seen: int) -> None:
        self._store = store
        self._worker_id = worker_id
        self._seen = seen
        self.runs: set[str] = set()

    async def catch_up(self, queues: Sequence[QueueSpec]) -> bool:
        """Look at all there are by now. Gives whether nothing went on in these queues after the last of them."""
        while True:
            after = EventQuery(types=("run_started",), after_position=self._seen, limit=MOST_EVENTS)
            # Of one moment: no run that was taken is left out.
            events, idle = await self._store.read(partial(_look, after, queues))
            for event in events:
                self._seen = event.position
                if isinstance(event.body, RunStarted) and event.body.owner == self._worker_id:
                    self.runs.add(event.run_id)
            if len(events) < MOST_EVENTS:
                return idle


def _served(view: View, hosted: set[str]) -> list[Run]:
    found = (view.run(run_id) for run_id in sorted(hosted))
    return [run for run in found if run is not None]


def _told(run: Run) -> dict[str, Json]:
    reason = run.failure.message if run.failure else run.waiting_for or ""
    told: dict[str, Json] = {"id": run.id, "status": run.status.value}
    if wo_id := _order_of(run):
        told["wo_id"] = wo_id
    return {**told, "reason": shown_line(reason, LONGEST_REASON)} if reason else told


def _order_of(run: Run) -> str:
    """Id of the order that it performs or proposes; empty where there is none."""
    given = run.input if isinstance(run.input, dict) else {}
    if run.flow == WORK_ORDER:
        order = given.get("order")
        return str(order["id"] if isinstance(order, dict) else given.get("file", ""))
    return str(given.get("wo_id", "")) if run.flow == CANDIDATE else ""


def _exit_code(served: Sequence[Run]) -> int:
    if any(run.status in (RunStatus.FAILED, RunStatus.CANCELLED) for run in served):
        return FAILED
    return WAITS if any(_waits_for_person(run) for run in served) else 0


def _waits_for_person(run: Run) -> bool:
    if run.status is RunStatus.WAITING:
        names = (run.waiting_for or "").split(", ")
        return any(each.startswith("approval:") for each in names)
    return run.status is RunStatus.NEEDS_HUMAN


def _look(query: EventQuery, queues: Sequence[QueueSpec], view: View) -> tuple[list[Event], bool]:
    return view.events(query), _idle(view, queues)


def _idle(view: View, queues: Sequence[QueueSpec]) -> bool:
    """Whether nothing goes on by itself any more: what only sleeps does, what waits for a person does not."""
    return not any(
        view.runs(RunQuery(queue=queue.name, statuses=UNFINISHED, limit=1)) or _sleeps(view, queue)
        for queue in queues
    )


def _sleeps(view: View, queue: QueueSpec) -> bool:
    waiting = RunQuery(queue=queue.name, statuses=(RunStatus.WAITING,), limit=MOST_WAITING)
    far = view.now() + SOON if queue.name in LOOP_QUEUES else None
    return any(run.only_sleeps and _wakes_before(run, far) for run in view.runs(waiting))


def _wakes_before(run: Run, far: datetime | None) -> bool:
    return far is None or run.wake_at is None or run.wake_at <= far
