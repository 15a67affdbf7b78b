"""A run's page, and the actions of operators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response

from podium.app.id_lookup import find_id
from podium.app.run_control import cancel, resume, retry
from podium.app.run_timeline import log_before, look_at_run
from podium.web.access.authentication import Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.context import CurrentContext, WebContext
from podium.web.pages import run_live, run_parts
from podium.web.pages.run_live import board_of, rendered_acts, rendered_head, rendered_lines
from podium.web.pages.run_parts import LOG_LINES, PARTS
from podium.web.pages.templates import page

router = APIRouter()
router.include_router(run_live.router)
router.include_router(run_parts.router)

FreeText = Annotated[str, Form(max_length=4000)]


@router.get("/runs/{run}")
async def run_page(
    request: Request, context: CurrentContext, person: Viewer, run: str, show: str = "log"
) -> Response:
    store = await context.store()
    head = await look_at_run(store, context.podium.engine, run)
    events = await log_before(store, head.run.id, 0, LOG_LINES)
    return page(
        request,
        "run.html",
        head=head,
        run=head.run,
        head_html=await rendered_head(context, head),
        acts_html=rendered_acts(head, may_act=person.may(ConsoleRole.OPERATOR)),
        lines_html=rendered_lines(events),
        first_seq=events[0].seq if events else 0,
        last_seq=events[-1].seq if events else 0,
        parts=PARTS,
        show=show if show in PARTS else "log",
    )


@router.post("/runs/{run}/cancel")
async def cancel_run(
    context: CurrentContext, person: Operator, run: str, why: FreeText = ""
) -> Response:
    engine = await context.podium.engine()
    await cancel(await context.store(), engine, run, by=person.name, why=why)
    return await _acts(context, run)


@router.post("/runs/{run}/resume")
async def resume_run(
    context: CurrentContext, person: Operator, run: str, note: FreeText = ""
) -> Response:
    engine = await context.podium.hosting_engine()
    await resume(await context.store(), engine, run, note=note, by=person.name)
    return await _acts(context, run)


@router.post("/runs/{run}/retry")
async def retry_run(
    context: CurrentContext, person: Operator, run: str, from_step: FreeText = ""
) -> Response:
    engine = await context.podium.hosting_engine()
    await retry(await context.store(), engine, run, from_step=from_step or None, by=person.name)
    return await _acts(context, run)


async def _acts(context: WebContext, run: str) -> Response:
    """Render the actions possible now, for an operator; the rest of the page refreshes by itself."""
    store = await context.store()
    run_id = await store.read(lambda view: find_id(view, "run", run))
    last = await store.read(lambda view: view.last_seq(run_id))
    view = await board_of(context).look(run_id, may_act=True, min_seq=last)
    return HTMLResponse(view.parts["acts"])
