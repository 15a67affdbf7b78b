"""Pages of runs, newest first, with their true status, current work and cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from datetime import UTC, datetime
from itertools import islice

from podium.app.run_list import INTERRUPTED, RunListing
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

_TYPES = (
    "agent_asked",
    "agent_replied",
    "checks_ran",
    "run_started",
    "step_broke",
    "step_completed",
    "step_started",
)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class RunFilter(FrozenModel):
    """Filter of a list of runs."""

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

    listing: RunListing
    step: str = ""
    """The step that began last and has not ended."""
    agent: str = ""
    """Agent that was asked last, or answered."""
    usd: float = 0.0
    news: str = ""
    """Latest news from its job."""
    checks: ChecksRan | None = None
    broke: StepBroke | None = None


class RunsPage(FrozenModel):
    """Runs that fit, newest first."""

    rows: tuple[RunRow, ...] = ()
    more: bool = False
    """There are older ones."""
    read_to: str = ""
    """The run as far as which was read for words, when there are more to read. Empty: all were, or enough was found."""

    @property
    def next_before(self) -> str:
        """Behind which run the next page begins. Empty: this is the last."""
        return self.rows[-1].listing.run.id if self.more and self.rows else self.read_to


async def see_runs(
    store: Store, engine: Callable[[], Awaitable[Engine]], run_filter: RunFilter
) -> RunsPage:
    """One page. A run that is stored as running and that nobody alive hosts is called interrupted."""
    alive = await (await engine()).alive()
    return await store.read(lambda view: _page(view, run_filter, alive))


async def see_rows(
    store: Store, engine: Callable[[], Awaitable[Engine]], run_ids: Collection[str]
) -> list[RunRow]:
    """These runs as they are now; those that are gone are left out."""
    alive = await (await engine()).alive()

    def look(view: StoreView) -> list[RunRow]:
        runs = [view.run(run_id) for run_id in run_ids]
        return [_row(view, run, alive) for run in runs if run is not None]

    return await store.read(look)


def fits(row: RunRow, run_filter: RunFilter) -> bool:
    """True when a run passes the filter."""
    run = row.listing.run
    return (
        run_filter.status in ("", row.listing.shown_status)
        and run_filter.flow in ("", run.flow)
        and run_filter.queue in ("", run.queue)
        and run_filter.parent in ("", run.parent_id)
        and run_filter.text.casefold() in run.task.casefold()
    )


def _page(view: StoreView, run_filter: RunFilter, alive: Collection[str]) -> RunsPage:
    read_to = view.run_back(run_filter.before or None, MAX_READ) if run_filter.text else None
    runs = list(islice(_runs(view, run_filter, alive, read_to), run_filter.limit + 1))
    rows = tuple(_row(view, run, alive) for run in runs[: run_filter.limit])
    if len(runs) > run_filter.limit:
        return RunsPage(rows=rows, more=True)
    return RunsPage(rows=rows, read_to=read_to or "")


def _runs(
    view: StoreView, run_filter: RunFilter, alive: Collection[str], read_to: str | None
) -> Iterator[Run]:
    """Those that fit. Whether one of them is hosted is not stored, so that it cannot be asked for."""
    status = RunStatus.RUNNING if run_filter.status == INTERRUPTED else run_filter.status
    query = RunQuery(
        statuses=(RunStatus(status),) if status else (),
        flow=run_filter.flow or None,
        queue=run_filter.queue or None,
        parent_id=run_filter.parent or None,
        text=run_filter.text,
        before_id=run_filter.before or None,
        from_id=read_to,
        limit=run_filter.limit + 1,
    )
    looked, most = 0, MAX_READ if run_filter.text else MAX_LOOKED_THROUGH
    while looked < most and (page := view.runs(query)):
        for run in page:
            if run_filter.status in ("", RunListing.among(run, alive).shown_status):
                yield run
        looked += len(page)
        if len(page) < query.limit:
            return
        query = query.model_copy(update={"before_id": page[-1].id})


def _row(view: StoreView, run: Run, alive: Collection[str]) -> RunRow:
    after = max(0, view.last_seq(run.id) - TAIL)
    types = (*_TYPES, *job_event_types())
    events = view.events(EventQuery(run_id=run.id, after_seq=after, types=types))
    counter = usage_counter("usd", "run", run.id, "", view.now())
    row = RunRow(
        listing=RunListing.among(run, alive),
        step="" if run.status.ended else _step(events),
        usd=view.counted(counter, _BEGINNING),
    )
    return row.model_copy(update=_latest(events))


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


def _latest(events: Collection[Event]) -> dict[str, object]:
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
