"""`/api/v1/runs`: which there are, how each stands, and what belongs to it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from podium.app.run_list import ShownStatus
from podium.app.run_log import list_steps
from podium.app.run_overview import RunFilter, RunRow, see_runs
from podium.app.run_timeline import calls_of, look_at_run, newest_events
from podium.core.decisions import Approval, CallRecord, Usage
from podium.core.events import BranchDelivered
from podium.core.model import FrozenModel
from podium.core.work import Run, StepRecord, WorkerHeartbeat
from podium.web.access.authentication import Viewer
from podium.web.api.requests import HIGHEST, MAX_NAME, TEXT, Name, NameAsked, Rows
from podium.web.context import CurrentContext

router = APIRouter(tags=["runs"])

Ordinal = Annotated[int, Query(ge=-1, le=HIGHEST)]


class RunListed(FrozenModel):
    """A run, how it really stands, and what it is at."""

    run: Run
    shown_status: ShownStatus
    """Its status; `interrupted` when it is stored as running and nobody alive hosts it."""
    hosted: bool
    step: str = ""
    agent: str = ""
    usd: float = 0.0


class RunsListed(FrozenModel):
    """Runs that fit, newest first."""

    runs: tuple[RunListed, ...]
    before: str | None
    """Ask for runs before this one to have the next page. None: there are no more.

    With `text` a page may be short or empty and have a next one: 10,000 runs are read for words at a time.
    """


class RunShown(FrozenModel):
    """One run with what a person wants to know of it at once."""

    run: Run
    shown_status: ShownStatus
    hosted: bool
    usage: Usage
    in_flight: tuple[str, ...]
    """Steps that were begun and have not ended."""
    steps_ended: tuple[str, ...]
    """The last ones."""
    owner: WorkerHeartbeat | None
    asks: tuple[Approval, ...]
    """What people are asked just now."""
    children: tuple[str, ...]
    delivered: BranchDelivered | None
    """The branch that came of it."""
    last_seq: int
    """Of its events."""


class StepsListed(FrozenModel):
    steps: tuple[StepRecord, ...]
    after: int | None
    """Ask for steps behind this ordinal to have the next page. None: there are no more."""


class CallsListed(FrozenModel):
    calls: tuple[CallRecord, ...]


@router.get("/runs")
async def list_runs(
    context: CurrentContext,
    person: Viewer,
    status: ShownStatus | None = None,
    flow: NameAsked = "",
    queue: NameAsked = "",
    parent: NameAsked = "",
    text: Annotated[str, Query(max_length=MAX_NAME, pattern=TEXT)] = "",
    before: NameAsked = "",
    limit: Rows = 50,
) -> RunsListed:
    """Runs, newest first, page by page."""
    wish = RunFilter(
        status=status or "",
        flow=flow,
        queue=queue,
        parent=parent,
        text=text,
        before=before,
        limit=limit,
    )
    page = await see_runs(await context.store(), context.podium.engine, wish)
    return RunsListed(runs=tuple(map(_listed, page.rows)), before=page.next_before or None)


@router.get("/runs/{run}")
async def show_run(context: CurrentContext, person: Viewer, run: Name) -> RunShown:
    """One run, by its id or a short form."""
    store = await context.store()
    head = await look_at_run(store, context.podium.engine, run)
    found = await newest_events(store, head.run.id, ("branch_delivered",), most=1)
    delivered = found[-1].body if found else None
    return RunShown(
        run=head.run,
        shown_status=ShownStatus(head.listing.shown_status),
        hosted=head.listing.hosted,
        usage=head.usage,
        in_flight=head.in_flight,
        steps_ended=head.done,
        owner=head.owner,
        asks=head.asks,
        children=tuple(child.run.id for child in head.children),
        delivered=delivered if isinstance(delivered, BranchDelivered) else None,
        last_seq=head.last_seq,
    )


@router.get("/runs/{run}/steps")
async def list_run_steps(
    context: CurrentContext, person: Viewer, run: Name, after: Ordinal = -1, limit: Rows = 100
) -> StepsListed:
    """The steps of a run that were recorded, in their order."""
    steps = await list_steps(await context.store(), run, after=after, limit=limit + 1)
    shown = steps[:limit]
    return StepsListed(steps=tuple(shown), after=shown[-1].ordinal if len(steps) > limit else None)


@router.get("/runs/{run}/calls")
async def list_run_calls(context: CurrentContext, person: Viewer, run: Name) -> CallsListed:
    """Every call of a run with its decision, the oldest first."""
    store = await context.store()
    head = await look_at_run(store, context.podium.engine, run)
    return CallsListed(calls=tuple(await calls_of(store, head.run.id)))


def _listed(row: RunRow) -> RunListed:
    return RunListed(
        run=row.listing.run,
        shown_status=ShownStatus(row.listing.shown_status),
        hosted=row.listing.hosted,
        step=row.step,
        agent=row.agent,
        usd=row.usd,
    )
