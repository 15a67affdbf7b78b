"""Runs as they go on: each line of a log once, and the parts of a page that have changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from podium.domain.events import Event
from podium.usecases import find_id
from podium.usecases.see_runs import RunsWish, fits, see_rows
from podium.web.access.entering import Viewer
from podium.web.access.people import ConsoleRole
from podium.web.desk import Desk, DeskHere
from podium.web.live.channel import Gap
from podium.web.live.hub import Hub
from podium.web.live.sse import Part, last_seen, streamed
from podium.web.pages.rendering import render
from podium.web.pages.run_board import board_of
from podium.web.pages.run_words import evidence, event_tone, event_words, status_words, tone

router = APIRouter()

LOOK_SECONDS = 1.0
"""After which is looked again although nothing was heard: a process that is killed says nothing."""
SETTLE_SECONDS = 0.15
"""So long is waited for more of the same before parts of a page are made anew."""
MOST_ROWS = 200
ROW_TYPES = (
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
    "stage_ended",
    "step_broke",
    "step_started",
    "usage_recorded",
)


@router.get("/live/runs/{run}")
async def follow_run(
    request: Request, desk: DeskHere, person: Viewer, run: str, after: int = 0
) -> Response:
    store = await desk.store()
    run_id = await store.read(lambda view: find_id(view, "run", run))
    seen = last_seen(request, after) or 0
    may_act = person.may(ConsoleRole.OPERATOR)
    return streamed(_run_parts(desk, run_id, seen, may_act=may_act))


@router.get("/live/runs")
async def follow_runs(
    desk: DeskHere,
    person: Viewer,
    rows: Annotated[str, Query(max_length=20_000)] = "",
    state: str = "",
    flow: str = "",
    text: str = "",
    before: str = "",
) -> Response:
    wish = RunsWish(status=state, flow=flow, text=text, before=before)
    shown = [each for each in rows.split(",") if each][:MOST_ROWS]
    return streamed(_row_parts(desk, wish, shown))


def rendered_lines(events: list[Event]) -> str:
    """Lines of a log."""
    return render("run_lines.html", events=events, words=event_words, tone=event_tone)


async def _run_parts(desk: Desk, run_id: str, after: int, *, may_act: bool) -> AsyncIterator[Part]:
    board, told, seq = board_of(desk), dict[str, str](), after
    async for heard in _with_pauses(desk.hub, run_id, after):
        for each in heard:
            if isinstance(each, Gap):
                seq = max(seq, each.to)
                yield Part(f"{each.after},{each.to}", "gap")
            else:
                seq = each.seq
                yield Part(rendered_lines([each]), "line", str(each.seq))
        shown = await board.look(run_id, may_act=may_act, seen_seq=seq)
        for name, html in shown.parts.items():
            if told.get(name) != html:
                told[name] = html
                yield Part(html, name)


async def _with_pauses(
    hub: Hub, run_id: str | None, after: int | None, types: tuple[str, ...] = ()
) -> AsyncIterator[list[Event | Gap]]:
    """What was heard, several at a time, and an empty list when nothing was for a while."""
    stream = hub.follow(run_id, after=after, types=types)
    async with aclosing(stream):  # type: ignore[type-var]  # the hub gives async generators
        coming = asyncio.ensure_future(anext(stream, None))
        try:
            ended = False
            while not ended:
                heard: list[Event | Gap] = []
                until = time.monotonic() + LOOK_SECONDS
                while not ended and (left := until - time.monotonic()) > 0:
                    await asyncio.wait([coming], timeout=left)
                    if not coming.done():
                        break
                    each = coming.result()
                    if each is None:
                        ended = True
                        break
                    if not heard:
                        until = time.monotonic() + SETTLE_SECONDS
                    heard.append(each)
                    coming = asyncio.ensure_future(anext(stream, None))
                yield heard
        finally:
            coming.cancel()
            await asyncio.wait([coming])


async def _row_parts(desk: Desk, wish: RunsWish, shown: list[str]) -> AsyncIterator[Part]:
    podium = desk.podium
    engine, visible = await podium.engine(), dict.fromkeys(shown)
    alive = await engine.alive()
    async for heard in _with_pauses(desk.hub, None, None, ROW_TYPES):
        named = dict.fromkeys(each.run_id for each in heard if isinstance(each, Event))
        missed = any(isinstance(each, Gap) for each in heard)
        living = await engine.alive()
        changed = visible if missed or living != alive else named
        alive = living
        if not changed:
            continue
        for row in await see_rows(await podium.store(), podium.engine, list(changed)[:MOST_ROWS]):
            run_id = row.stands.run.id
            if run_id not in visible and (wish.before or not fits(row, wish)):
                continue
            kind = "row" if run_id in visible else "new"
            visible[run_id] = None
            yield Part(rendered_row(row), kind)


def rendered_row(row: object) -> str:
    """A row of the list."""
    return render(
        "runs_row.html", row=row, evidence=evidence, tone=tone, status_words=status_words
    )
