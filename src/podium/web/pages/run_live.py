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
from podium.app.run_overview import RunFilter, RunRow, fits, see_rows
from podium.app.run_timeline import RunHead, look_at_run, run_timeline
from podium.app.submission import asked_by
from podium.core.events import Event
from podium.core.job import job_event_types
from podium.core.work import RunStatus
from podium.jobs.pipeline.run_branch import branch_name_of
from podium.web.access.authentication import Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.api.requests import Place
from podium.web.context import CurrentContext, WebContext
from podium.web.live.hub import Gap
from podium.web.live.sse import Part, last_seen, streamed, with_looks
from podium.web.pages.run_display import (
    event_tone,
    event_words,
    evidence,
    failure_words,
    picture_of,
    status_words,
    tone,
    waits_words,
)
from podium.web.pages.templates import render

FRESH_SECONDS = 0.8
"""So old may be what somebody is shown of a run in which nothing has happened since."""
MAX_KEPT = 200
"""Runs of which something is kept."""


@dataclass(frozen=True)
class Shown:
    """Parts of a page, rendered, and what they were made of."""

    head: RunHead
    parts: dict[str, Markup]
    made_at: float


class RunBoard:
    """Renders the moving parts of run pages. Many who follow one run cost what one does."""

    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._kept: dict[tuple[str, bool], Shown] = {}
        self._making: dict[str, asyncio.Lock] = {}

    async def look(self, run_id: str, *, may_act: bool, seen_seq: int = 0) -> Shown:
        """The parts, not older than the event `seen_seq` of the run."""
        key = run_id, may_act
        async with self._making.setdefault(run_id, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is None or not _is_fresh(kept, seen_seq):
                kept = await self._make(run_id, may_act=may_act)
                self._keep(key, kept)
        return kept

    async def _make(self, run_id: str, *, may_act: bool) -> Shown:
        podium = self._context.podium
        store = await podium.store()
        head = await look_at_run(store, podium.engine, run_id)
        picture = picture_of(await run_timeline(store, run_id))
        parts = {
            "head": await rendered_head(self._context, head),
            "acts": rendered_acts(head, may_act=may_act),
            "timeline": rendered("run_timeline.html", picture=picture, run=head.run),
        }
        return Shown(head, parts, time.monotonic())

    def _keep(self, key: tuple[str, bool], shown: Shown) -> None:
        self._kept.pop(key, None)
        self._kept[key] = shown
        while len(self._kept) > MAX_KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            if not any(run_id == oldest[0] for run_id, _ in self._kept):
                self._making.pop(oldest[0], None)


def rendered(name: str, **values: object) -> Markup:
    """A template as a part that others hold: it was escaped when it was made."""
    return Markup(render(name, **values))  # noqa: S704 - templates escape everything


def rendered_acts(head: RunHead, *, may_act: bool) -> Markup:
    """What can be done with a run as it stands, as HTML."""
    return rendered("run_acts.html", head=head, run=head.run, may_act=may_act)


async def rendered_head(context: WebContext, head: RunHead) -> Markup:
    """State, task, cost and branch, as HTML."""
    run, stands = head.run, head.listing
    waits = waits_words(run) if run.status is RunStatus.WAITING else ""
    return rendered(
        "run_head.html",
        head=head,
        run=run,
        status=status_words(stands.shown_status),
        tone=tone(stands.shown_status),
        why=waits or failure_words(run),
        branch=await branch_name_of(context.podium, run),
        asked_by=asked_by(run),
    )


def _is_fresh(kept: Shown, seen_seq: int) -> bool:
    return kept.head.last_seq >= seen_seq and time.monotonic() - kept.made_at < FRESH_SECONDS


_BOARDS: WeakKeyDictionary[WebContext, RunBoard] = WeakKeyDictionary()


def board_of(context: WebContext) -> RunBoard:
    """The console's board."""
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
"""Events of the kernel after which a row of the list may be another."""


@router.get("/live/runs/{run}")
async def follow_run(
    request: Request, context: CurrentContext, person: Viewer, run: str, after: Place = 0
) -> Response:
    store = await context.store()
    run_id = await store.read(lambda view: find_id(view, "run", run))
    seen = last_seen(request, after) or 0
    may_act = person.may(ConsoleRole.OPERATOR)
    return streamed(_run_parts(context, run_id, seen, may_act=may_act))


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
    wish = RunFilter(status=status, flow=flow, text=text, before=before)
    shown = [each for each in rows.split(",") if each][:MAX_ROWS]
    return streamed(_row_parts(context, wish, shown))


def rendered_lines(events: Sequence[Event]) -> Markup:
    """Lines of a log."""
    return rendered("run_lines.html", events=events, words=event_words, tone=event_tone)


async def _run_parts(
    context: WebContext, run_id: str, after: int, *, may_act: bool
) -> AsyncIterator[Part]:
    board, told, seq = board_of(context), dict[str, str](), after
    async for each in with_looks(context.hub, run_id, after):
        if isinstance(each, Gap):
            seq = each.to
            yield Part(f"{each.after},{each.to}", "gap")
        elif each is not None:
            seq = each.seq
            yield Part(rendered_lines([each]), "line", str(seq))
        else:
            shown = await board.look(run_id, may_act=may_act, seen_seq=seq)
            for name, html in shown.parts.items():
                if told.get(name) != html:
                    told[name] = html
                    yield Part(html, name)


class _List:
    """The rows that one person sees, and which of them may be others now."""

    def __init__(self, context: WebContext, wish: RunFilter, shown: list[str]) -> None:
        self._podium = context.podium
        self._wish = wish
        self._visible = dict.fromkeys(shown)
        self._heard: dict[str, None] = {}
        self._alive: set[str] | None = None

    def hear(self, each: Event | Gap) -> None:
        if isinstance(each, Gap):
            self._heard.update(self._visible)
        else:
            self._heard[each.run_id] = None

    async def changed(self) -> list[Part]:
        alive = await (await self._podium.engine()).alive()
        if self._alive is not None and alive != self._alive:
            self._heard.update(self._visible)
        self._alive = alive
        wanted, self._heard = list(self._heard)[:MAX_ROWS], {}
        if not wanted:
            return []
        rows = await see_rows(await self._podium.store(), self._podium.engine, wanted)
        return [part for row in rows if (part := self._part(row)) is not None]

    def _part(self, row: RunRow) -> Part | None:
        run_id = row.listing.run.id
        if run_id in self._visible:
            return Part(rendered_row(row), "row")
        if self._wish.before or not fits(row, self._wish):
            return None
        self._visible[run_id] = None
        return Part(rendered_row(row), "new")


async def _row_parts(context: WebContext, wish: RunFilter, shown: list[str]) -> AsyncIterator[Part]:
    rows = _List(context, wish, shown)
    types = (*_ROW_TYPES, *job_event_types())
    async for each in with_looks(context.hub, None, None, types):
        if each is not None:
            rows.hear(each)
            continue
        for part in await rows.changed():
            yield part


def rendered_row(row: RunRow) -> Markup:
    """A row of the list."""
    return rendered(
        "runs_row.html", row=row, evidence=evidence, tone=tone, status_words=status_words
    )
