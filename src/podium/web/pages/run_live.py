"""Runs as they go on: each line of a log once, and the parts of a page that have changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from podium.domain.events import Event
from podium.usecases import find_id
from podium.usecases.see_runs import RunRow, RunsWish, fits, see_rows
from podium.web.access.entering import Viewer
from podium.web.access.people import ConsoleRole
from podium.web.api.asking import Place
from podium.web.desk import Desk, DeskHere
from podium.web.live.channel import Gap
from podium.web.live.looks import with_looks
from podium.web.live.sse import Part, last_seen, streamed
from podium.web.pages.run_board import board_of, rendered
from podium.web.pages.run_words import event_tone, event_words, evidence, status_words, tone

router = APIRouter()

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
    request: Request, desk: DeskHere, person: Viewer, run: str, after: Place = 0
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
    status: str = "",
    flow: str = "",
    text: str = "",
    before: str = "",
) -> Response:
    wish = RunsWish(status=status, flow=flow, text=text, before=before)
    shown = [each for each in rows.split(",") if each][:MOST_ROWS]
    return streamed(_row_parts(desk, wish, shown))


def rendered_lines(events: Sequence[Event]) -> Markup:
    """Lines of a log."""
    return rendered("run_lines.html", events=events, words=event_words, tone=event_tone)


async def _run_parts(desk: Desk, run_id: str, after: int, *, may_act: bool) -> AsyncIterator[Part]:
    board, told, seq = board_of(desk), dict[str, str](), after
    async for each in with_looks(desk.hub, run_id, after):
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

    def __init__(self, desk: Desk, wish: RunsWish, shown: list[str]) -> None:
        self._podium = desk.podium
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
        wanted, self._heard = list(self._heard)[:MOST_ROWS], {}
        if not wanted:
            return []
        rows = await see_rows(await self._podium.store(), self._podium.engine, wanted)
        return [part for row in rows if (part := self._part(row)) is not None]

    def _part(self, row: RunRow) -> Part | None:
        run_id = row.stands.run.id
        if run_id in self._visible:
            return Part(rendered_row(row), "row")
        if self._wish.before or not fits(row, self._wish):
            return None
        self._visible[run_id] = None
        return Part(rendered_row(row), "new")


async def _row_parts(desk: Desk, wish: RunsWish, shown: list[str]) -> AsyncIterator[Part]:
    rows = _List(desk, wish, shown)
    async for each in with_looks(desk.hub, None, None, ROW_TYPES):
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
