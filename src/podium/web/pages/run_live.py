"""Live parts of a run's page: head, timeline and log, computed once for all viewers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from podium.app.id_lookup import find_id
from podium.app.run_branch import branch_name_of
from podium.app.run_overview import RunFilter, RunRow, fits, see_rows
from podium.app.run_timeline import RunHead, look_at_run, run_timeline
from podium.app.work_request import asked_by
from podium.core.events import Event
from podium.core.job import job_event_types
from podium.core.work import RunStatus
from podium.web.access.authentication import Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.api.requests import Position
from podium.web.context import CurrentContext, WebContext
from podium.web.live.hub import Gap
from podium.web.live.sse import Part, resume_after, streamed, with_looks
from podium.web.pages.run_display import (
    event_text,
    event_tone,
    evidence,
    failure_text,
    picture_of,
    status_text,
    tone,
    waiting_text,
)
from podium.web.pages.templates import render

FRESH_SECONDS = 0.8
"""Maximum age of a rendered run in which nothing has happened since."""
MAX_VIEWS = 200
"""Rendered runs kept at once."""


@dataclass(frozen=True)
class RenderedRun:
    """Rendered parts of a page, and the data they were made from."""

    head: RunHead
    parts: dict[str, Markup]
    made_at: float


class RunBoard:
    """Renders the live parts of run pages once for all viewers."""

    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._views: dict[tuple[str, bool], RenderedRun] = {}
        self._making: dict[str, asyncio.Lock] = {}

    async def look(self, run_id: str, *, may_act: bool, min_seq: int = 0) -> RenderedRun:
        """Return the parts, not older than the event `min_seq` of the run."""
        key = run_id, may_act
        async with self._making.setdefault(run_id, asyncio.Lock()):
            view = self._views.get(key)
            if view is None or not _is_fresh(view, min_seq):
                view = await self._make(run_id, may_act=may_act)
                self._keep(key, view)
        return view

    async def _make(self, run_id: str, *, may_act: bool) -> RenderedRun:
        podium = self._context.podium
        store = await podium.store()
        head = await look_at_run(store, podium.engine, run_id)
        picture = picture_of(await run_timeline(store, run_id))
        parts = {
            "head": await rendered_head(self._context, head),
            "acts": rendered_acts(head, may_act=may_act),
            "timeline": rendered("run_timeline.html", picture=picture, run=head.run),
        }
        return RenderedRun(head, parts, time.monotonic())

    def _keep(self, key: tuple[str, bool], view: RenderedRun) -> None:
        self._views.pop(key, None)
        self._views[key] = view
        while len(self._views) > MAX_VIEWS:
            oldest = next(iter(self._views))
            del self._views[oldest]
            if not any(run_id == oldest[0] for run_id, _ in self._views):
                self._making.pop(oldest[0], None)


def rendered(name: str, **values: object) -> Markup:
    """Render a template as markup; it is escaped already."""
    return Markup(render(name, **values))  # noqa: S704 - templates escape everything


def rendered_acts(head: RunHead, *, may_act: bool) -> Markup:
    """Render the actions possible on a run."""
    return rendered("run_acts.html", head=head, run=head.run, may_act=may_act)


async def rendered_head(context: WebContext, head: RunHead) -> Markup:
    """Render status, task, cost and branch."""
    run, status = head.run, head.listing
    waits = waiting_text(run) if run.status is RunStatus.WAITING else ""
    return rendered(
        "run_head.html",
        head=head,
        run=run,
        status=status_text(status.shown_status),
        tone=tone(status.shown_status),
        why=waits or failure_text(run),
        branch=await branch_name_of(context.podium, run),
        asked_by=asked_by(run),
    )


def _is_fresh(view: RenderedRun, min_seq: int) -> bool:
    return view.head.last_seq >= min_seq and time.monotonic() - view.made_at < FRESH_SECONDS


_BOARDS: WeakKeyDictionary[WebContext, RunBoard] = WeakKeyDictionary()


def board_of(context: WebContext) -> RunBoard:
    """Return the console's board."""
    return _BOARDS.setdefault(context, RunBoard(context))


router = APIRouter()

MAX_ROWS = 200
_ROW_TYPES = (
    "agent_asked",
    "checks_ran",
    "run_cancelled",
    "run_failed",
    "run_needed_human",
    "run_parked",
    "run_queued",
    "run_retried",
    "run_started",
    "run_succeeded",
    "run_waiting",
    "signal_received",
    "step_broke",
    "step_started",
    "usage_recorded",
)
"""Kernel event types that may change a row of the list."""


@router.get("/live/runs/{run}")
async def follow_run(
    request: Request, context: CurrentContext, person: Viewer, run: str, after: Position = 0
) -> Response:
    store = await context.store()
    run_id = await store.read(lambda view: find_id(view, "run", run))
    after_seq = resume_after(request, after) or 0
    may_act = person.may(ConsoleRole.OPERATOR)
    return streamed(_run_parts(context, run_id, after_seq, may_act=may_act))


@router.get("/live/runs")
async def follow_runs(
    context: CurrentContext,
    person: Viewer,
    rows: Annotated[str, Query(max_length=20_000)] = "",
    status: str = "",
    flow: str = "",
    text: str = "",
    before: str = "",
) -> Response:
    query = RunFilter(status=status, flow=flow, text=text, before=before)
    run_ids = [run_id for run_id in rows.split(",") if run_id][:MAX_ROWS]
    return streamed(_row_parts(context, query, run_ids))


def rendered_lines(events: Sequence[Event]) -> Markup:
    """Render lines of a log."""
    return rendered("run_lines.html", events=events, words=event_text, tone=event_tone)


async def _run_parts(
    context: WebContext, run_id: str, after: int, *, may_act: bool
) -> AsyncIterator[Part]:
    board, sent, seq = board_of(context), dict[str, str](), after
    async for item in with_looks(context.hub, run_id, after):
        if isinstance(item, Gap):
            seq = item.to
            yield Part(f"{item.after},{item.to}", "gap")
        elif item is not None:
            seq = item.seq
            yield Part(rendered_lines([item]), "line", str(seq))
        else:
            view = await board.look(run_id, may_act=may_act, min_seq=seq)
            for name, html in view.parts.items():
                if sent.get(name) != html:
                    sent[name] = html
                    yield Part(html, name)


class _List:
    """Rows one person sees, and which of them may have changed."""

    def __init__(self, context: WebContext, query: RunFilter, run_ids: list[str]) -> None:
        self._podium = context.podium
        self._query = query
        self._visible = dict.fromkeys(run_ids)
        self._changed: dict[str, None] = {}
        self._alive: set[str] | None = None

    def hear(self, item: Event | Gap) -> None:
        if isinstance(item, Gap):
            self._changed.update(self._visible)
        else:
            self._changed[item.run_id] = None

    async def changed(self) -> list[Part]:
        alive = await (await self._podium.engine()).alive()
        if self._alive is not None and alive != self._alive:
            self._changed.update(self._visible)
        self._alive = alive
        run_ids, self._changed = list(self._changed)[:MAX_ROWS], {}
        if not run_ids:
            return []
        rows = await see_rows(await self._podium.store(), self._podium.engine, run_ids)
        return [part for row in rows if (part := self._part(row)) is not None]

    def _part(self, row: RunRow) -> Part | None:
        run_id = row.listing.run.id
        if run_id in self._visible:
            return Part(rendered_row(row), "row")
        if self._query.before or not fits(row, self._query):
            return None
        self._visible[run_id] = None
        return Part(rendered_row(row), "new")


async def _row_parts(
    context: WebContext, query: RunFilter, run_ids: list[str]
) -> AsyncIterator[Part]:
    rows = _List(context, query, run_ids)
    types = (*_ROW_TYPES, *job_event_types())
    async for item in with_looks(context.hub, None, None, types):
        if item is not None:
            rows.hear(item)
            continue
        for part in await rows.changed():
            yield part


def rendered_row(row: RunRow) -> Markup:
    """Render a row of the list."""
    return rendered("runs_row.html", row=row, evidence=evidence, tone=tone, status_text=status_text)
