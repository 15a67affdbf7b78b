"""What stands above a run's log, made once for everybody who looks at it at the same time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from markupsafe import Markup

from podium.domain.work import RunStatus
from podium.usecases.look_at_run import RunHead, look_at_run
from podium.usecases.run_timeline import run_timeline
from podium.web.desk import Desk
from podium.web.pages.rendering import render
from podium.web.pages.run_picture import picture_of
from podium.web.pages.run_words import failure_words, status_words, tone, waits_words
from podium.wiring.run_branches import branch_name_of
from podium.wiring.submitting import asked_by

FRESH_SECONDS = 0.8
"""So old may be what somebody is shown of a run in which nothing has happened since."""
MOST_KEPT = 200
"""Runs of which something is kept."""


@dataclass(frozen=True)
class Shown:
    """Parts of a page, rendered, and what they were made of."""

    head: RunHead
    parts: dict[str, Markup]
    made_at: float


class RunBoard:
    """Renders the moving parts of run pages. Many who follow one run cost what one does."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
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
        podium = self._desk.podium
        store = await podium.store()
        head = await look_at_run(store, podium.engine, run_id)
        picture = picture_of(await run_timeline(store, run_id))
        parts = {
            "head": await rendered_head(self._desk, head),
            "acts": rendered_acts(head, may_act=may_act),
            "timeline": rendered("run_timeline.html", picture=picture, run=head.run),
        }
        return Shown(head, parts, time.monotonic())

    def _keep(self, key: tuple[str, bool], shown: Shown) -> None:
        self._kept.pop(key, None)
        self._kept[key] = shown
        while len(self._kept) > MOST_KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            if not any(run_id == oldest[0] for run_id, _ in self._kept):
                self._making.pop(oldest[0], None)


def rendered(name: str, **context: object) -> Markup:
    """A template as a part that others hold: it was escaped when it was made."""
    return Markup(render(name, **context))  # noqa: S704 - templates escape everything


def rendered_acts(head: RunHead, *, may_act: bool) -> Markup:
    """What can be done with a run as it stands, as HTML."""
    return rendered("run_acts.html", head=head, run=head.run, may_act=may_act)


async def rendered_head(desk: Desk, head: RunHead) -> Markup:
    """State, task, cost and branch, as HTML."""
    run, stands = head.run, head.stands
    waits = waits_words(run) if run.status is RunStatus.WAITING else ""
    return rendered(
        "run_head.html",
        head=head,
        run=run,
        status=status_words(stands.shown_status),
        tone=tone(stands.shown_status),
        why=waits or failure_words(run),
        branch=await branch_name_of(desk.podium, run),
        asked_by=asked_by(run),
    )


def _is_fresh(kept: Shown, seen_seq: int) -> bool:
    return kept.head.last_seq >= seen_seq and time.monotonic() - kept.made_at < FRESH_SECONDS


_BOARDS: WeakKeyDictionary[Desk, RunBoard] = WeakKeyDictionary()


def board_of(desk: Desk) -> RunBoard:
    """The console's board."""
    return _BOARDS.setdefault(desk, RunBoard(desk))
