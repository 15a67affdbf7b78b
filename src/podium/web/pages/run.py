"""A run's page: its parts, and the actions of operators."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from podium.app.id_lookup import find_id
from podium.app.receipts import list_receipts, verify_receipts
from podium.app.run_branch import branch_of, diff_of, document_of
from podium.app.run_control import cancel, resume, retry
from podium.app.run_report import follow_logs, transcript_of
from podium.app.run_timeline import (
    calls_of,
    log_after,
    log_before,
    look_at_run,
    newest_events,
    run_timeline,
)
from podium.core.decisions import canonical_json
from podium.core.errors import NotPossibleNow, PodiumError, UnknownId
from podium.core.events import AgentAsked, AgentReplied, ChecksRan, ModelAnswered
from podium.core.forge import check_ending
from podium.core.work import Run
from podium.render.event import shorten, usage_text
from podium.web.access.authentication import Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.context import CurrentContext, WebContext
from podium.web.pages import run_live
from podium.web.pages.run_display import picture_of, status_text, tone
from podium.web.pages.run_documents import read_diff, rendered
from podium.web.pages.run_live import board_of, rendered_acts, rendered_head, rendered_lines
from podium.web.pages.templates import page

router = APIRouter()
router.include_router(run_live.router)

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


PARTS = {
    "log": "Log",
    "talk": "Prompts and replies",
    "calls": "Tool calls",
    "checks": "Checks",
    "documents": "Documents",
    "diff": "Diff",
    "receipts": "Receipts",
    "about": "More",
}
"""Parts below the timeline, with their titles."""
LOG_LINES = 150
MAX_TURNS = 20
MAX_CALLS = 100
MAX_CHECKS = 50
MAX_TEXT = 20_000
"""Maximum characters of a prompt or a reply; transcripts have all of it."""

Seq = Annotated[int, Query(ge=0, le=2**31)]


@router.get("/runs/{run}/part/log")
async def log_part(request: Request, context: CurrentContext, person: Viewer, run: str) -> Response:
    run_id = await _run_id(context, run)
    events = await log_before(await context.store(), run_id, 0, LOG_LINES)
    return page(
        request,
        "run_log.html",
        run_id=run_id,
        lines_html=rendered_lines(events),
        first_seq=events[0].seq if events else 0,
    )


@router.get("/runs/{run}/lines")
async def older_or_newer_lines(
    request: Request,
    context: CurrentContext,
    person: Viewer,
    run: str,
    before: Seq = 0,
    after: Seq = 0,
) -> Response:
    """Render the lines before one, with a link to older ones; or the lines after one."""
    run_id, store = await _run_id(context, run), await context.store()
    if not before:
        return HTMLResponse(rendered_lines(await log_after(store, run_id, after, LOG_LINES)))
    events = await log_before(store, run_id, before, LOG_LINES) if before > 1 else []
    return page(
        request,
        "run_older.html",
        run_id=run_id,
        lines_html=rendered_lines(events),
        first_seq=events[0].seq if events else 0,
    )


@router.get("/runs/{run}/part/timeline")
async def timeline_part(
    request: Request, context: CurrentContext, person: Viewer, run: str
) -> Response:
    head = await _run(context, run)
    picture = picture_of(await run_timeline(await context.store(), head.id))
    return page(request, "run_timeline.html", picture=picture, run=head)


@router.get("/runs/{run}/part/talk")
async def talk_part(
    request: Request, context: CurrentContext, person: Viewer, run: str, before: Seq = 0
) -> Response:
    run_id = await _run_id(context, run)
    events = await newest_events(
        await context.store(),
        run_id,
        ("agent_asked", "agent_replied", "model_answered"),
        most=MAX_TURNS,
        until_seq=before - 1 if before else None,
    )
    return page(
        request,
        "run_talk.html",
        run_id=run_id,
        said=[(event, _message(event.body), _transcript(event.body)) for event in events],
        older=events[0].seq if len(events) == MAX_TURNS else 0,
    )


@router.get("/runs/{run}/part/transcript")
async def transcript_part(
    request: Request, context: CurrentContext, person: Viewer, run: str, name: str
) -> Response:
    """Render the transcript of a turn, line by line as the agent's driver wrote it."""
    run_id = await _run_id(context, run)
    text, cut = await transcript_of(context.podium, run_id, name)
    return page(request, "run_transcript.html", run_id=run_id, file=name, text=text, cut=cut)


def _transcript(body: object) -> str:
    """Return the name of a reply's transcript; empty when it has none."""
    return Path(body.transcript or "").name if isinstance(body, AgentReplied) else ""


def _message(body: object) -> tuple[str, str, str]:
    """Return speaker, kind and text of a message."""
    match body:
        case AgentAsked():
            return f"Podium to {body.role} ({body.agent})", "asked", _cut(body.prompt)
        case AgentReplied():
            about = usage_text(body.usage)
            return f"{body.role} ({body.agent}), {about}", "replied", _cut(body.text)
        case ModelAnswered(answer=answer):
            calls = "".join(f"\n→ {call.tool} {_json(call.arguments)}" for call in answer.calls)
            who = f"{body.role} ({body.agent}) {answer.model} #{answer.number}"
            return who, "replied", _cut(f"{answer.text}{calls}")
    return "", "", ""


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n[… {len(text) - MAX_TEXT} more characters]"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


@router.get("/runs/{run}/part/calls")
async def calls_part(
    request: Request, context: CurrentContext, person: Viewer, run: str, skip: Seq = 0
) -> Response:
    run_id = await _run_id(context, run)
    calls = (await calls_of(await context.store(), run_id))[::-1]
    return page(
        request,
        "run_calls.html",
        run_id=run_id,
        calls=calls[skip : skip + MAX_CALLS],
        total=len(calls),
        older=skip + MAX_CALLS if len(calls) > skip + MAX_CALLS else 0,
        written=lambda value: _cut(_pretty(value)),
        in_a_line=canonical_json,
    )


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


@router.get("/runs/{run}/part/checks")
async def checks_part(
    request: Request, context: CurrentContext, person: Viewer, run: str
) -> Response:
    run_id = await _run_id(context, run)
    events = await newest_events(await context.store(), run_id, ("checks_ran",), most=MAX_CHECKS)
    checks = [
        (event, event.body) for event in reversed(events) if isinstance(event.body, ChecksRan)
    ]
    return page(
        request,
        "run_checks.html",
        checks=checks,
        ending=check_ending,
        cut=len(events) == MAX_CHECKS,
    )


@router.get("/runs/{run}/part/documents")
async def documents_part(
    request: Request, context: CurrentContext, person: Viewer, run: str, path: str = ""
) -> Response:
    head = await _run(context, run)
    branch = await branch_of(context.podium, head)
    document = path or (branch.documents[-1].path if branch.documents else "")
    text, problem = "", ""
    cut = False
    if document:
        try:
            excerpt = await document_of(context.podium, branch, document)
            text, cut = excerpt.text, excerpt.cut
        except UnknownId:
            raise
        except PodiumError as error:
            problem = str(error)
    return page(
        request,
        "run_documents.html",
        run_id=head.id,
        branch=branch,
        path=document,
        html=await rendered(text),
        cut=cut,
        trouble=problem,
    )


@router.get("/runs/{run}/part/diff")
async def diff_part(
    request: Request, context: CurrentContext, person: Viewer, run: str
) -> Response:
    head = await _run(context, run)
    branch = await branch_of(context.podium, head)
    problem, diff = "", read_diff("")
    try:
        excerpt = await diff_of(context.podium, branch)
        diff = read_diff(excerpt.text, cut=excerpt.cut)
    except PodiumError as error:
        problem = str(error)
    return page(request, "run_diff.html", branch=branch, diff=diff, trouble=problem)


@router.get("/runs/{run}/part/receipts")
async def receipts_part(
    request: Request, context: CurrentContext, person: Viewer, run: str
) -> Response:
    run_id, store = await _run_id(context, run), await context.store()
    receipts = await list_receipts(store, run_id)
    verdict, problem = None, ""
    try:
        if receipts and not context.podium.receipt_key.exists():
            raise NotPossibleNow(
                "the receipt key is missing; receipts cannot be verified until it is restored"
            )
        if receipts or context.podium.has_heads:
            verdict = await verify_receipts(store, await context.podium.verifier(), run_id)
    except PodiumError as error:
        problem = str(error)
    problems = {problem.number: problem for problem in verdict.faults} if verdict else {}
    return page(
        request,
        "run_receipts.html",
        run_id=run_id,
        receipts=receipts[::-1][:500],
        total=len(receipts),
        verdict=verdict,
        faults=problems,
        trouble=problem,
        written=canonical_json,
        shorten=shorten,
    )


@router.get("/runs/{run}/part/about")
async def about_part(
    request: Request, context: CurrentContext, person: Viewer, run: str
) -> Response:
    head = await look_at_run(await context.store(), context.podium.engine, run)
    return page(
        request,
        "run_about.html",
        head=head,
        run=head.run,
        result=_cut(_pretty(head.run.result)) if head.run.result is not None else "",
        input=_cut(_pretty(head.run.input)) if head.run.input is not None else "",
        tone=tone,
        status_text=status_text,
    )


@router.get("/runs/{run}/events.jsonl")
async def download_events(context: CurrentContext, person: Viewer, run: str) -> Response:
    """Download every event of the run, one per line, as in traces."""
    run_id, store = await _run_id(context, run), await context.store()

    async def lines() -> AsyncIterator[str]:
        async for event in follow_logs(store, run_id):
            yield _json(event.line()) + "\n"

    headers = {"content-disposition": f'attachment; filename="{run_id}.jsonl"'}
    return StreamingResponse(lines(), media_type="application/jsonl", headers=headers)


async def _run_id(context: WebContext, run: str) -> str:
    store = await context.store()
    return await store.read(lambda view: find_id(view, "run", run))


async def _run(context: WebContext, text: str) -> Run:
    store = await context.store()
    run_id = await _run_id(context, text)
    run = await store.read(lambda view: view.run(run_id))
    if run is None:
        raise UnknownId("run", text)
    return run
