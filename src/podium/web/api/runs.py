"""`/api/v1/runs`: list, show, start, cancel, resume and retry runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from pydantic import Field

from podium.app.id_lookup import find_call_key
from podium.app.run_control import cancel, resolve_call, resume, retry
from podium.app.run_list import ShownStatus
from podium.app.run_overview import RunFilter, RunRow, see_runs
from podium.app.run_report import list_steps
from podium.app.run_timeline import calls_of, look_at_run, newest_events
from podium.app.work_request import WorkRequest, option_schemas, submit
from podium.core.decisions import Approval, CallRecord, Usage
from podium.core.events import BranchDelivered
from podium.core.model import FrozenModel, Json
from podium.core.work import Run, StepRecord, WorkerHeartbeat
from podium.web.access.authentication import Approver, Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.api.requests import (
    HIGHEST,
    MAX_NAME,
    TEXT,
    FreeText,
    Name,
    NameQuery,
    RequestBody,
    Rows,
)
from podium.web.context import CurrentContext

runs_router = APIRouter(tags=["runs"])

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
    """Pass as `before` to get the next page. None: this is the last page.

    With `text`, a page may be short or empty and still have a next one: 10,000 runs are searched at a time.
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
    """Pass as `after` to get the next page. None: this is the last page."""


class CallsListed(FrozenModel):
    calls: tuple[CallRecord, ...]


@runs_router.get("/runs")
async def list_runs(
    context: CurrentContext,
    person: Viewer,
    status: ShownStatus | None = None,
    flow: NameQuery = "",
    queue: NameQuery = "",
    parent: NameQuery = "",
    text: Annotated[str, Query(max_length=MAX_NAME, pattern=TEXT)] = "",
    before: NameQuery = "",
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


@runs_router.get("/runs/{run}")
async def show_run(context: CurrentContext, person: Viewer, run: Name) -> RunDetails:
    """Show one run, by its ID or a short form of it."""
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


@runs_router.get("/runs/{run}/steps")
async def list_run_steps(
    context: CurrentContext, person: Viewer, run: Name, after: Ordinal = -1, limit: Rows = 100
) -> StepsListed:
    """List the recorded steps of a run, in order."""
    steps = await list_steps(await context.store(), run, after=after, limit=limit + 1)
    listed = steps[:limit]
    return StepsListed(
        steps=tuple(listed), after=listed[-1].ordinal if len(steps) > limit else None
    )


@runs_router.get("/runs/{run}/calls")
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


starting_router = APIRouter(tags=["starting"])


class FlowsListed(FrozenModel):
    """Flows that can be started, with the JSON Schema of their `options`."""

    flows: dict[str, dict[str, Json]]


class RunRequest(WorkRequest, RequestBody):
    """Request to start a run."""


class CancelRequest(RequestBody):
    why: FreeText = ""


class ResumeRequest(RequestBody):
    note: FreeText = ""
    """Guidance for a run that asked a person."""


class RetryRequest(RequestBody):
    from_step: Annotated[str, Field(min_length=1, max_length=1100, pattern=TEXT)] | None = None
    """First step to run again, with all later steps. None: the failed step."""


class Resolution(RequestBody):
    """Outcome of a call in doubt."""

    call: Annotated[str, Field(min_length=1, max_length=2000, pattern=TEXT)]
    """Its key, `RUN:STEP:…`."""
    happened: bool


@starting_router.get("/flows")
async def list_flows(person: Viewer) -> FlowsListed:
    """List the flows that can be started, with their options."""
    return FlowsListed(flows=option_schemas())


@starting_router.post("/runs", status_code=202)
async def start_run(context: CurrentContext, person: Operator, request: RunRequest) -> Run:
    """Queue a run of any flow. It is durable when this returns; follow its events."""
    may_approve = person.may(ConsoleRole.APPROVER)
    return await submit(
        context.podium, request, by=person.name, may_approve=may_approve, approver=person.approver
    )


@starting_router.api_route(
    "/runs", methods=["DELETE", "OPTIONS", "PATCH", "PUT"], include_in_schema=False
)
async def refuse_other_methods(person: Viewer) -> None:
    """Answer 405 with both methods: two routes share this path, and each would name only its own."""
    raise HTTPException(405, "Method Not Allowed", {"Allow": "GET, POST"})


@starting_router.post("/runs/{run}/cancel", status_code=202)
async def cancel_run(
    context: CurrentContext, person: Operator, run: Name, request: CancelRequest
) -> Run:
    """Cancel a run, whoever hosts it. It is `cancelled` once all its processes are dead."""
    engine = await context.podium.engine()
    return await cancel(await context.store(), engine, run, by=person.name, why=request.why)


@starting_router.post("/runs/{run}/resume", status_code=202)
async def resume_run(
    context: CurrentContext, person: Operator, run: Name, request: ResumeRequest
) -> Run:
    """Resume a run that no process hosts, in the console's process, from its last checkpoint."""
    engine = await context.podium.hosting_engine()
    return await resume(await context.store(), engine, run, note=request.note, by=person.name)


@starting_router.post("/runs/{run}/retry", status_code=202)
async def retry_run(
    context: CurrentContext, person: Operator, run: Name, request: RetryRequest
) -> Run:
    """Retry a run in the console's process, from a step or from what failed."""
    engine = await context.podium.hosting_engine()
    return await retry(
        await context.store(), engine, run, from_step=request.from_step, by=person.name
    )


@starting_router.post("/calls/resolve")
async def resolve_doubt(
    context: CurrentContext, person: Approver, resolution: Resolution
) -> CallRecord:
    """Record the outcome of a call in doubt. Its run stays stopped until it is resumed."""
    store = await context.store()
    key = await store.read(lambda view: find_call_key(view, resolution.call))
    return await resolve_call(
        store, context.podium.clock, key, happened=resolution.happened, by=person.name
    )
