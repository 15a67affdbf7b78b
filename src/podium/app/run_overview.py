"""Pages of runs, newest first, with their true status, current work and cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from datetime import UTC, datetime
from itertools import islice

from podium.app.run_list import INTERRUPTED, Standing
from podium.core.decisions import usage_counter
from podium.core.events import (
    AgentAsked,
    AgentReplied,
    ChecksRan,
    Event,
    RunStarted,
    StepBroke,
    StepCompleted,
    StepStarted,
)
from podium.core.job import job_event_types
from podium.core.model import FrozenModel
from podium.core.work import Run, RunStatus
from podium.ports import Engine, EventQuery, RunQuery, Store, StoreView
from podium.render.event import view_event

TAIL = 40
"""Events at the end of a run among which is looked for what it is at."""
MAX_LOOKED_THROUGH = 2000
"""Running runs that are looked at for those that nobody hosts."""
MAX_READ = 10_000
"""Runs that are read for words at a time: no index knows the words of tasks."""

_TOLD_BY = (
    "agent_asked",
    "agent_replied",
    "checks_ran",
    "run_started",
    "step_broke",
    "step_completed",
    "step_started",
)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class RunsWish(FrozenModel):
    """Which runs a person wants to see."""

    status: str = ""
    """One of `ShownStatus`. Empty: all."""
    flow: str = ""
    queue: str = ""
    parent: str = ""
    """Only what this run, by its whole id, has started."""
    text: str = ""
    """Words of the task."""
    before: str = ""
    """Only runs older than this one."""
    limit: int = 40


class RunRow(FrozenModel):
    """A run in the list."""

    stands: Standing
    step: str = ""
    """The step that began last and has not ended."""
    agent: str = ""
    """Who was asked last, or answered."""
    usd: float = 0.0
    news: str = ""
    """What its job last said of it, and the last checks, if they were lately."""
    checks: ChecksRan | None = None
    broke: StepBroke | None = None


class RunsPage(FrozenModel):
    """Runs that fit, newest first."""

    rows: tuple[RunRow, ...] = ()
    more: bool = False
    """Whether there are older ones."""
    read_to: str = ""
    """The run as far as which was read for words, when there are more to read. Empty: all were, or enough was found."""

    @property
    def next_before(self) -> str:
        """Behind which run the next page begins. Empty: this is the last."""
        return self.rows[-1].stands.run.id if self.more and self.rows else self.read_to


async def see_runs(
    store: Store, engine: Callable[[], Awaitable[Engine]], wish: RunsWish
) -> RunsPage:
    """One page. A run that is stored as running and that nobody alive hosts is called interrupted."""
    alive = await (await engine()).alive()
    return await store.read(lambda view: _page(view, wish, alive))


async def see_rows(
    store: Store, engine: Callable[[], Awaitable[Engine]], run_ids: Collection[str]
) -> list[RunRow]:
    """These runs as they are now; those that are gone are left out."""
    alive = await (await engine()).alive()

    def look(view: StoreView) -> list[RunRow]:
        found = [view.run(run_id) for run_id in run_ids]
        return [_row(view, run, alive) for run in found if run is not None]

    return await store.read(look)


def fits(row: RunRow, wish: RunsWish) -> bool:
    """Whether a run belongs in the list that was wished for."""
    run = row.stands.run
    return (
        wish.status in ("", row.stands.shown_status)
        and wish.flow in ("", run.flow)
        and wish.queue in ("", run.queue)
        and wish.parent in ("", run.parent_id)
        and wish.text.casefold() in run.task.casefold()
    )


def _page(view: StoreView, wish: RunsWish, alive: Collection[str]) -> RunsPage:
    read_to = view.run_back(wish.before or None, MAX_READ) if wish.text else None
    found = list(islice(_runs(view, wish, alive, read_to), wish.limit + 1))
    rows = tuple(_row(view, run, alive) for run in found[: wish.limit])
    if len(found) > wish.limit:
        return RunsPage(rows=rows, more=True)
    return RunsPage(rows=rows, read_to=read_to or "")


def _runs(
    view: StoreView, wish: RunsWish, alive: Collection[str], read_to: str | None
) -> Iterator[Run]:
    """Those that fit. Whether one of them is hosted is not stored, so that it cannot be asked for."""
    status = RunStatus.RUNNING if wish.status == INTERRUPTED else wish.status
    query = RunQuery(
        statuses=(RunStatus(status),) if status else (),
        flow=wish.flow or None,
        queue=wish.queue or None,
        parent_id=wish.parent or None,
        text=wish.text,
        before_id=wish.before or None,
        from_id=read_to,
        limit=wish.limit + 1,
    )
    looked, most = 0, MAX_READ if wish.text else MAX_LOOKED_THROUGH
    while looked < most and (page := view.runs(query)):
        for run in page:
            if wish.status in ("", Standing.among(run, alive).shown_status):
                yield run
        looked += len(page)
        if len(page) < query.limit:
            return
        query = query.model_copy(update={"before_id": page[-1].id})


def _row(view: StoreView, run: Run, alive: Collection[str]) -> RunRow:
    after = max(0, view.last_seq(run.id) - TAIL)
    types = (*_TOLD_BY, *job_event_types())
    events = view.events(EventQuery(run_id=run.id, after_seq=after, types=types))
    counter = usage_counter("usd", "run", run.id, "", view.now())
    row = RunRow(
        stands=Standing.among(run, alive),
        step="" if run.status.ended else _step(events),
        usd=view.counted(counter, _BEGINNING),
    )
    return row.model_copy(update=_last_of_each(events))


def _step(events: Collection[Event]) -> str:
    begun: dict[str, None] = {}
    for event in events:
        match event.body:
            case RunStarted():
                begun.clear()
            case StepStarted(step=step):
                begun[step] = None
            case StepCompleted(step=step) | StepBroke(step=step):
                begun.pop(step, None)
    return next(reversed(begun), "")


def _last_of_each(events: Collection[Event]) -> dict[str, object]:
    last: dict[str, object] = {}
    for event in events:
        match event.body:
            case AgentAsked(agent=agent) | AgentReplied(agent=agent):
                last["agent"] = agent
            case ChecksRan():
                last["checks"] = event.body
            case StepBroke():
                last["broke"] = event.body
            case body if brief := view_event(body).brief:
                last["news"] = brief
    return last
