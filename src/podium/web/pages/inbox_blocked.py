"""Blocked runs: resume them, and resolve a call in doubt."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from podium.app.id_lookup import find_id
from podium.app.inbox import Blocked
from podium.app.run_control import resolve_call, resume
from podium.core.decisions import CallStatus
from podium.core.errors import BadInput, UnknownId
from podium.ports import StoreView
from podium.web.access.authentication import Approver, Operator
from podium.web.access.tokens import Person
from podium.web.context import CurrentContext, WebContext
from podium.web.pages.cards import blocked_view
from podium.web.pages.templates import page

router = APIRouter()


@router.post("/blocked/{run_id}/resume")
async def go_on(
    request: Request,
    context: CurrentContext,
    person: Operator,
    run_id: str,
    note: Annotated[str, Form(max_length=4_000)] = "",
) -> Response:
    """Resume the run in this process; the note is guidance for one that asked."""
    engine = await context.podium.hosting_engine()
    run = await resume(await context.store(), engine, run_id, note=note.strip(), by=person.name)
    return await _response(request, context, person, run.id, "Resumed in the console's process.")


@router.post("/blocked/{run_id}/resolve")
async def resolve(
    request: Request,
    context: CurrentContext,
    person: Approver,
    run_id: str,
    call: Annotated[str, Form(max_length=1_000)] = "",
    happened: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Record the outcome of a call. The run stays blocked until somebody resumes it."""
    if happened not in ("yes", "no"):
        raise BadInput("choose whether it happened")
    if not call.startswith(f"{run_id}:"):
        raise BadInput(f"call {call[:100]!r} does not belong to run {run_id}")
    did = happened == "yes"
    await resolve_call(
        await context.store(), context.podium.clock, call, happened=did, by=person.name
    )
    note = "Recorded: it happened." if did else "Recorded: it did not happen."
    return await _response(request, context, person, run_id, note)


async def _response(
    request: Request, context: WebContext, person: Person, text: str, note: str
) -> Response:
    if "hx-request" not in request.headers:
        return RedirectResponse("/", status_code=303)
    store = await context.store()

    def look(view: StoreView) -> Blocked:
        run = view.run(find_id(view, "run", text))
        if run is None:
            raise UnknownId("run", text)
        return Blocked(
            run=run,
            reason=run.failure.message if run.failure else "",
            in_doubt=tuple(view.calls(run.id, CallStatus.IN_DOUBT)),
        )

    blocked = await store.read(look)
    return page(request, "card_blocked.html", shown=blocked_view(blocked, person), note=note)
