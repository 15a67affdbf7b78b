"""State table of tasks, each with the message it awaits, and the message history of one task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from podium.app.id_lookup import find_id
from podium.app.run_list import INTERRUPTED
from podium.core import events as e
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.ids import short_id
from podium.core.model import FrozenModel, UtcDatetime
from podium.core.turns import Address
from podium.core.work import Run, RunStatus
from podium.jobs.duet.events import (
    BlockIgnored,
    KeyboardReturned,
    KeyboardTaken,
    LegOpened,
    MessageHeard,
    PairSeated,
    SideNudged,
)
from podium.jobs.duet.models import DUET, Hop
from podium.ports import Engine, EventQuery, RunQuery, Store, StoreView

MAX_RUNS = 1_000
MAX_EVENTS = 10_000


class DuetTask(FrozenModel):
    """One row."""

    run_id: str
    task_id: str
    text: str
    status: RunStatus
    interrupted: bool = False
    """Its status is running, but no process hosts it: continue with `podium resume`."""
    queue: str | None = None
    pair: str = ""
    """Empty while it waits for one."""
    leg: Hop | None = None
    """Awaited message, or the last one when it ended."""
    since: UtcDatetime | None = None
    """Start of that hop."""

    @property
    def shown_status(self) -> str:
        return INTERRUPTED if self.interrupted else self.status.value

    @property
    def is_open(self) -> bool:
        return not self.status.ended

    @property
    def hop_step(self) -> str:
        """Return the step that opens this hop."""
        number = self.leg.number if self.leg else 0
        return f"leg#{number}" if number else "leg"


async def list_duets(store: Store, *, also_ended: bool = False) -> list[DuetTask]:
    """List open tasks, oldest first; with `also_ended` the ended ones as well."""

    def look(view: StoreView) -> list[DuetTask]:
        runs = view.runs(RunQuery(flow=DUET, limit=MAX_RUNS))
        selected = [run for run in runs if also_ended or not run.status.ended]
        return [_row(view, run) for run in sorted(selected, key=lambda run: run.id)]

    return await store.read(look)


async def with_hosts(
    tasks: Sequence[DuetTask], engine: Callable[[], Awaitable[Engine]]
) -> list[DuetTask]:
    """Mark tasks that no process hosts as interrupted. Builds the engine only if a task is running."""
    running = [task.run_id for task in tasks if task.status is RunStatus.RUNNING]
    hosted = await (await engine()).hosted(running) if running else set()
    return [
        task.model_copy(update={"interrupted": True})
        if task.run_id in running and task.run_id not in hosted
        else task
        for task in tasks
    ]


async def find_duet(store: Store, named: str, *, ended: bool = False) -> DuetTask:
    """Find a task by id; without one the only open task, or with `ended` the last that did not succeed.

    Raises `BadInput` if that is ambiguous, and `NotPossibleNow` if there is none.
    """
    if named:
        return await store.read(lambda view: _named(view, named))
    if ended:
        tasks = await list_duets(store, also_ended=True)
        short = [task for task in tasks if task.status is not RunStatus.SUCCEEDED]
        over = [task for task in short if task.status.ended]
        if not short:
            raise NotPossibleNow("there is no open or failed duet task")
        return (over or short)[-1]
    tasks = await list_duets(store)
    if not tasks:
        raise NotPossibleNow("there is no open duet task; start one with `podium duet send TASK`")
    if len(tasks) > 1:
        listed = ", ".join(f"{task.task_id} ({task.text[:40]})" for task in tasks[:10])
        raise BadInput(f"{len(tasks)} tasks are open; pass the id of one: {listed}")
    return tasks[0]


def _named(view: StoreView, named: str) -> DuetTask:
    run = view.run(find_id(view, "run", named))
    if run is None or run.flow != DUET:
        raise BadInput(f"{named!r} is not a duet task; list them with `podium duet status`")
    return _row(view, run)


def _row(view: StoreView, run: Run) -> DuetTask:
    query = EventQuery(run_id=run.id, types=("pair_seated", "leg_opened"), limit=MAX_EVENTS)
    pair, hop, since = "", None, None
    for event in view.events(query):
        match event.body:
            case PairSeated(pair=name):
                pair = name
            case LegOpened(leg=opened):
                hop, since = opened, event.at
    return DuetTask(
        run_id=run.id,
        task_id=short_id(run.id),
        text=run.task,
        status=run.status,
        queue=run.queue,
        pair=pair,
        leg=hop,
        since=since,
    )


_TYPES = (
    "message_heard", "block_ignored", "side_nudged", "keyboard_taken", "keyboard_returned", "run_needed_human",
    "run_failed", "run_cancelled", "run_retried",
)  # fmt: skip
_MAX_EVENTS = 10_000


class TaskEvent(FrozenModel):
    """One entry of the message history."""

    at: UtcDatetime
    sender: Address
    to: Address | None = None
    """None: it went nowhere."""
    type: str = ""
    """Of a message; empty for all else."""
    body: str = ""
    """The message, whole."""
    event: e.AnyEvent
    """Body of the journal event, for renderers."""


async def task_history(store: Store, run_id: str, most: int) -> list[TaskEvent]:
    """List the last `most` entries of a task's message history, oldest first."""

    def look(view: StoreView) -> list[TaskEvent]:
        query = EventQuery(run_id=run_id, types=_TYPES, limit=_MAX_EVENTS)
        return [_task_event(event) for event in view.events(query)][-most:]

    return await store.read(look)


def _task_event(event: e.Event) -> TaskEvent:
    body = event.body
    match body:
        case MessageHeard(sender=sender, routed_to=to, message=message):
            return TaskEvent(
                at=event.at,
                sender=sender,
                to=to,
                type=message.type,
                body=message.body,
                event=body,
            )
        case SideNudged(side=side):
            return TaskEvent(at=event.at, sender="USER", to=side, event=body)
        case BlockIgnored(sender=side) | KeyboardTaken(side=side) | KeyboardReturned(side=side):
            return TaskEvent(at=event.at, sender=side, event=body)
    return TaskEvent(at=event.at, sender="USER", event=body)
