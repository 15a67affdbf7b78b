"""`/api/v1`: start, cancel, resume and retry runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException
from pydantic import Field

from podium.app.id_lookup import find_call_key
from podium.app.run_control import cancel, resolve_call, resume, retry
from podium.app.submission import WorkRequest, option_schemas, submit
from podium.core.decisions import CallRecord
from podium.core.model import FrozenModel, Json
from podium.core.work import Run
from podium.web.access.authentication import Approver, Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.api.requests import TEXT, Asked, Name, Words
from podium.web.context import CurrentContext

router = APIRouter(tags=["starting"])


class FlowsListed(FrozenModel):
    """What can be started, and what each flow may be told: JSON Schema of `options`."""

    flows: dict[str, dict[str, Json]]


class RunWish(WorkRequest, Asked):
    """Work that somebody wants done."""


class CancelWish(Asked):
    why: Words = ""


class ResumeWish(Asked):
    note: Words = ""
    """Guidance for a run that asked a person."""


class RetryWish(Asked):
    from_step: Annotated[str, Field(min_length=1, max_length=1100, pattern=TEXT)] | None = None
    """This step and all after it are forgotten. None: from what failed."""


class Resolution(Asked):
    """What became of a call of which nobody knew."""

    call: Annotated[str, Field(min_length=1, max_length=2000, pattern=TEXT)]
    """Its key, `RUN:STEP:…`."""
    happened: bool


@router.get("/flows")
async def list_flows(person: Viewer) -> FlowsListed:
    """Which flows can be started, and with what."""
    return FlowsListed(flows=option_schemas())


@router.post("/runs", status_code=202)
async def start_run(context: CurrentContext, person: Operator, wish: RunWish) -> Run:
    """Put a run of any flow into its queue. It is durable when this answers; follow its events."""
    may_approve = person.may(ConsoleRole.APPROVER)
    return await submit(
        context.podium, wish, by=person.name, may_approve=may_approve, approver=person.approver
    )


@router.api_route("/runs", methods=["DELETE", "OPTIONS", "PATCH", "PUT"], include_in_schema=False)
async def refuse_other_methods(person: Viewer) -> None:
    """Two routes have this path, and each would name only its own method."""
    raise HTTPException(405, "Method Not Allowed", {"Allow": "GET, POST"})


@router.post("/runs/{run}/cancel", status_code=202)
async def cancel_run(context: CurrentContext, person: Operator, run: Name, wish: CancelWish) -> Run:
    """Wish a run ended, whoever hosts it. It is `cancelled` once all its processes are dead."""
    engine = await context.podium.engine()
    return await cancel(await context.store(), engine, run, by=person.name, why=wish.why)


@router.post("/runs/{run}/resume", status_code=202)
async def resume_run(context: CurrentContext, person: Operator, run: Name, wish: ResumeWish) -> Run:
    """Let a run that nobody hosts go on here, from its checkpoint."""
    engine = await context.podium.hosting_engine()
    return await resume(await context.store(), engine, run, note=wish.note, by=person.name)


@router.post("/runs/{run}/retry", status_code=202)
async def retry_run(context: CurrentContext, person: Operator, run: Name, wish: RetryWish) -> Run:
    """Let a run go again here, from a step or from what failed."""
    engine = await context.podium.hosting_engine()
    return await retry(await context.store(), engine, run, from_step=wish.from_step, by=person.name)


@router.post("/calls/resolve")
async def resolve_doubt(context: CurrentContext, person: Approver, said: Resolution) -> CallRecord:
    """Say what became of a call in doubt. Its run stays where it is until it is resumed."""
    store = await context.store()
    key = await store.read(lambda view: find_call_key(view, said.call))
    return await resolve_call(
        store, context.podium.clock, key, happened=said.happened, by=person.name
    )
