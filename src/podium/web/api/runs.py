"""`/api/v1/runs`: which there are, how each stands, and what belongs to it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from podium.app.run_list import ShownStatus
from podium.app.run_overview import RunFilter, RunRow, see_runs
from podium.app.run_report import list_steps
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
    """A run with its live status and current step."""

    run: Run
    shown_status: ShownStatus
    """Status; `interrupted` when it is stored as running and no live process hosts it."""
    hosted: bool
    step: str = ""
    agent: str = ""
    usd: float = 0.0


class RunsListed(FrozenModel):
    """Matching runs, newest first."""

    runs: tuple[RunListed, ...]
    before: str | None
    """Ask for runs before this one to have the next page. None: there are no more.

    With `text` a page may be short or empty and have a next one: 10,000 runs are read for words at a time.
    """


class RunDetails(FrozenModel):
    """One run with its details."""

    run: Run
    shown_status: ShownStatus
    hosted: bool
    usage: Usage
    in_flight: tuple[str, ...]
    """Steps that started and have not ended."""
    steps_ended: tuple[str, ...]
    """Latest steps that ended."""
    owner: WorkerHeartbeat | None
    asks: tuple[Approval, ...]
    """Approvals that are pending now."""
    children: tuple[str, ...]
    delivered: BranchDelivered | None
    """Branch it delivered."""
    last_seq: int
    """`seq` of its last event."""


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
    """List runs, newest first, page by page."""
    query = RunFilter(
        status=status or "",
        flow=flow,
        queue=queue,
        parent=parent,
        text=text,
        before=before,
        limit=limit,
    )
    page = await see_runs(await context.store(), context.podium.engine, query)
    return RunsListed(runs=tuple(map(_listed, page.rows)), before=page.next_before or None)


@router.get("/runs/{run}")
async def show_run(context: CurrentContext, person: Viewer, run: Name) -> RunDetails:
    """Show one run, by its id or a short form."""
    store = await context.store()
    head = await look_at_run(store, context.podium.engine, run)
    deliveries = await newest_events(store, head.run.id, ("branch_delivered",), most=1)
    delivered = deliveries[-1].body if deliveries else None
    return RunDetails(
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
    """List the recorded steps of a run, in order."""
    steps = await list_steps(await context.store(), run, after=after, limit=limit + 1)
    listed = steps[:limit]
    return StepsListed(
        steps=tuple(listed), after=listed[-1].ordinal if len(steps) > limit else None
    )


@router.get("/runs/{run}/calls")
async def list_run_calls(context: CurrentContext, person: Viewer, run: Name) -> CallsListed:
    """List every call of a run with its decision, oldest first."""
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
