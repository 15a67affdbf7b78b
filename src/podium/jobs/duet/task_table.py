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
    """It is said to run, and nobody hosts it: `podium resume` goes on with it."""
    queue: str | None = None
    pair: str = ""
    """Empty while it waits for one."""
    leg: Hop | None = None
    """What is awaited, or was when it ended."""
    since: UtcDatetime | None = None
    """When that leg was opened."""

    @property
    def shown_status(self) -> str:
        return INTERRUPTED if self.interrupted else self.status.value

    @property
    def is_open(self) -> bool:
        return not self.status.ended

    @property
    def leg_step(self) -> str:
        """The step with which that leg begins."""
        number = self.leg.number if self.leg else 0
        return f"leg#{number}" if number else "leg"


async def see_duets(store: Store, *, also_ended: bool = False) -> list[DuetTask]:
    """Tasks that have not ended, oldest first; with `also_ended` the others before them."""

    def look(view: StoreView) -> list[DuetTask]:
        runs = view.runs(RunQuery(flow=DUET, limit=MAX_RUNS))
        kept = [run for run in runs if also_ended or not run.status.ended]
        return [_row(view, run) for run in sorted(kept, key=lambda run: run.id)]

    return await store.read(look)


async def with_hosts(
    tasks: Sequence[DuetTask], engine: Callable[[], Awaitable[Engine]]
) -> list[DuetTask]:
    """The same tasks, with who is hosted looked up. The engine is only asked for where one is said to run."""
    running = [task.run_id for task in tasks if task.status is RunStatus.RUNNING]
    hosted = await (await engine()).hosted(running) if running else set()
    return [
        task.model_copy(update={"interrupted": True})
        if task.run_id in running and task.run_id not in hosted
        else task
        for task in tasks
    ]


async def find_duet(store: Store, named: str, *, ended: bool = False) -> DuetTask:
    """The task of this id. Without one it is the only task that goes on, or with `ended` the last that ended short.

    Raises `BadInput` where it is not clear which is meant, and `NotPossibleNow` where there is none.
    """
    if named:
        return await store.read(lambda view: _named(view, named))
    if ended:
        tasks = await see_duets(store, also_ended=True)
        short = [task for task in tasks if task.status is not RunStatus.SUCCEEDED]
        over = [task for task in short if task.status.ended]
        if not short:
            raise NotPossibleNow("no task of a duet is open or has failed")
        return (over or short)[-1]
    tasks = await see_duets(store)
    if not tasks:
        raise NotPossibleNow("no task of a duet goes on; `podium duet send TASK` begins one")
    if len(tasks) > 1:
        listed = ", ".join(f"{task.task_id} ({task.text[:40]})" for task in tasks[:10])
        raise BadInput(f"{len(tasks)} tasks go on; say which: {listed}")
    return tasks[0]


def _named(view: StoreView, named: str) -> DuetTask:
    run = view.run(find_id(view, "run", named))
    if run is None or run.flow != DUET:
        raise BadInput(f"{named!r} is no task of a duet; `podium duet status` lists them")
    return _row(view, run)


def _row(view: StoreView, run: Run) -> DuetTask:
    query = EventQuery(run_id=run.id, types=("pair_seated", "leg_opened"), limit=MAX_EVENTS)
    pair, leg, since = "", None, None
    for event in view.events(query):
        match event.body:
            case PairSeated(pair=name):
                pair = name
            case LegOpened(leg=opened):
                leg, since = opened, event.at
    return DuetTask(
        run_id=run.id,
        task_id=short_id(run.id),
        text=run.task,
        status=run.status,
        queue=run.queue,
        pair=pair,
        leg=leg,
        since=since,
    )


_TYPES = (
    "message_heard", "block_ignored", "side_nudged", "keyboard_taken", "keyboard_returned", "run_needed_human",
    "run_failed", "run_cancelled", "run_retried",
)  # fmt: skip
_MAX_EVENTS = 10_000


class TaskEvent(FrozenModel):
    """One thing that happened between them."""

    at: UtcDatetime
    sender: Address
    to: Address | None = None
    """None: it went nowhere."""
    type: str = ""
    """Of a message; empty for all else."""
    body: str = ""
    """The message, whole."""
    told: e.AnyEvent
    """What happened, for whoever has words for it."""


async def see_ladder(store: Store, run_id: str, most: int) -> list[TaskEvent]:
    """The last rungs of a task, oldest first."""

    def look(view: StoreView) -> list[TaskEvent]:
        query = EventQuery(run_id=run_id, types=_TYPES, limit=_MAX_EVENTS)
        return [_rung(event) for event in view.events(query)][-most:]

    return await store.read(look)


def _rung(event: e.Event) -> TaskEvent:
    body = event.body
    match body:
        case MessageHeard(sender=sender, routed_to=to, message=message):
            return TaskEvent(
                at=event.at,
                sender=sender,
                to=to,
                type=message.type,
                body=message.body,
                told=body,
            )
        case SideNudged(side=side):
            return TaskEvent(at=event.at, sender="USER", to=side, told=body)
        case BlockIgnored(sender=side) | KeyboardTaken(side=side) | KeyboardReturned(side=side):
            return TaskEvent(at=event.at, sender=side, told=body)
    return TaskEvent(at=event.at, sender="USER", told=body)
