"""`/api/v1`: start, cancel, resume and retry runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException
from pydantic import Field

from podium.app.id_lookup import find_call_key
from podium.app.run_control import cancel, resolve_call, resume, retry
from podium.app.work_request import WorkRequest, option_schemas, submit
from podium.core.decisions import CallRecord
from podium.core.model import FrozenModel, Json
from podium.core.work import Run
from podium.web.access.authentication import Approver, Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.api.requests import TEXT, Asked, FreeText, Name
from podium.web.context import CurrentContext

router = APIRouter(tags=["starting"])


class FlowsListed(FrozenModel):
    """Flows that can be started, with the JSON Schema of their `options`."""

    flows: dict[str, dict[str, Json]]


class RunRequest(WorkRequest, Asked):
    """Request to start a run."""


class CancelRequest(Asked):
    why: FreeText = ""


class ResumeRequest(Asked):
    note: FreeText = ""
    """Guidance for a run that asked a person."""


class RetryRequest(Asked):
    from_step: Annotated[str, Field(min_length=1, max_length=1100, pattern=TEXT)] | None = None
    """First step to run again, with all after it. None: the one that failed."""


class Resolution(Asked):
    """Outcome of a call in doubt."""

    call: Annotated[str, Field(min_length=1, max_length=2000, pattern=TEXT)]
    """Its key, `RUN:STEP:…`."""
    happened: bool


@router.get("/flows")
async def list_flows(person: Viewer) -> FlowsListed:
    """List the flows that can be started, with their options."""
    return FlowsListed(flows=option_schemas())


@router.post("/runs", status_code=202)
async def start_run(context: CurrentContext, person: Operator, request: RunRequest) -> Run:
    """Queue a run of any flow. It is durable when this returns; follow its events."""
    may_approve = person.may(ConsoleRole.APPROVER)
    return await submit(
        context.podium, request, by=person.name, may_approve=may_approve, approver=person.approver
    )


@router.api_route("/runs", methods=["DELETE", "OPTIONS", "PATCH", "PUT"], include_in_schema=False)
async def refuse_other_methods(person: Viewer) -> None:
    """Answer 405 with both methods: two routes share this path, and each would name only its own."""
    raise HTTPException(405, "Method Not Allowed", {"Allow": "GET, POST"})


@router.post("/runs/{run}/cancel", status_code=202)
async def cancel_run(
    context: CurrentContext, person: Operator, run: Name, request: CancelRequest
) -> Run:
    """Cancel a run, whoever hosts it. It is `cancelled` once all its processes are dead."""
    engine = await context.podium.engine()
    return await cancel(await context.store(), engine, run, by=person.name, why=request.why)


@router.post("/runs/{run}/resume", status_code=202)
async def resume_run(
    context: CurrentContext, person: Operator, run: Name, request: ResumeRequest
) -> Run:
    """Resume a run that nobody hosts in the console's process, from its last checkpoint."""
    engine = await context.podium.hosting_engine()
    return await resume(await context.store(), engine, run, note=request.note, by=person.name)


@router.post("/runs/{run}/retry", status_code=202)
async def retry_run(
    context: CurrentContext, person: Operator, run: Name, request: RetryRequest
) -> Run:
    """Retry a run in the console's process, from a step or from what failed."""
    engine = await context.podium.hosting_engine()
    return await retry(
        await context.store(), engine, run, from_step=request.from_step, by=person.name
    )


@router.post("/calls/resolve")
async def resolve_doubt(
    context: CurrentContext, person: Approver, resolution: Resolution
) -> CallRecord:
    """Record the outcome of a call in doubt. Its run stays stopped until it is resumed."""
    store = await context.store()
    key = await store.read(lambda view: find_call_key(view, resolution.call))
    return await resolve_call(
        store, context.podium.clock, key, happened=resolution.happened, by=person.name
    )
