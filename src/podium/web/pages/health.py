"""Page of cost and health, with plots drawn by the server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium import __version__
from podium.app.checkup import examine
from podium.app.costs import MAX_FAILED, Sum, see_causes
from podium.app.inbox import see_inbox
from podium.app.work_request import queues_of
from podium.app.workload import see_queues, see_workers
from podium.web.access.authentication import Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.context import CurrentContext
from podium.web.live.sse import Topic, streamed, topic_updates
from podium.web.pages.templates import page

WIDTH, HEIGHT = 720, 200
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 24
GAP = 0.25
"""Share of a bar's slot that stays empty."""
MAX_BARS = 12
STEPS = (1, 2, 5, 10)
GRID_LINES = 4


@dataclass(frozen=True)
class HealthBar:
    sum: Sum
    x: float
    y: float
    width: float
    height: float
    label: str = ""
    """Axis label; empty where there is no room."""
    is_over: bool = False
    """True above the limit."""


@dataclass(frozen=True)
class DayPlot:
    """A bar for each day, grid lines, and the daily limit."""

    bars: tuple[HealthBar, ...]
    lines: tuple[tuple[float, float], ...]
    """Height in the plot, and dollars."""
    limit_y: float | None = None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT


@dataclass(frozen=True)
class RankedBar:
    """A horizontal bar, as wide as its share of the largest."""

    sum: Sum
    percent: float


def day_plot(days: Sequence[Sum], limit_usd: float | None) -> DayPlot:
    top = _round_up(max([limit_usd or 0.0, *(day.usd for day in days)]))
    slot, baseline = (WIDTH - LEFT - RIGHT) / max(1, len(days)), HEIGHT - BOTTOM
    scale = (baseline - TOP) / top

    def bar(number: int, day: Sum) -> HealthBar:
        height = day.usd * scale
        is_labelled = (len(days) - 1 - number) % 7 == 0
        return HealthBar(
            sum=day,
            x=round(LEFT + slot * (number + GAP / 2), 1),
            y=round(baseline - height, 1),
            width=round(slot * (1 - GAP), 1),
            height=round(height, 1),
            label=day.name[5:] if is_labelled else "",
            is_over=limit_usd is not None and day.usd > limit_usd,
        )

    steps = (top * step / GRID_LINES for step in range(GRID_LINES + 1))
    return DayPlot(
        bars=tuple(bar(number, day) for number, day in enumerate(days)),
        lines=tuple((round(baseline - usd * scale, 1), usd) for usd in steps),
        limit_y=None if limit_usd is None else round(baseline - limit_usd * scale, 1),
    )


def ranked(sums: Sequence[Sum]) -> tuple[RankedBar, ...]:
    """Rank the most expensive, by dollars; by tokens where nothing had a cost."""
    by_usd = any(total.usd for total in sums)
    figures = [total.usd if by_usd else float(total.tokens) for total in sums[:MAX_BARS]]
    top = max(figures, default=0.0) or 1.0
    return tuple(
        RankedBar(total, round(100 * figure / top, 1))
        for total, figure in zip(sums, figures, strict=False)
    )


def _round_up(usd: float) -> float:
    """Round up to the next easily read figure: 1, 2 or 5 with zeros."""
    if usd <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(usd))
    return next(step * power for step in STEPS if step * power >= usd)


router = APIRouter()

SETTLE_SECONDS = 2.0
"""Refresh delay: sums need not follow every call of a busy project."""
ENDS = ("run_cancelled", "run_failed", "run_needed_human", "run_retried", "run_succeeded")
MOVES = (
    *ENDS, "approval_requested", "approval_granted", "approval_rejected", "approval_expired", "run_parked",
    "run_queued", "run_started", "run_waiting", "tool_resolved",
)  # fmt: skip
"""Event types that change waiting work or workers."""


@router.get("/health")
async def health_page(request: Request, context: CurrentContext, person: Viewer) -> Response:
    """Render the frame; its parts load separately, the slow ones later."""
    return page(
        request,
        "health.html",
        version=__version__,
        faults=context.podium.problems,
        may_examine=person.may(ConsoleRole.OPERATOR),
    )


@router.get("/live/health")
async def health_live(context: CurrentContext, person: Viewer) -> Response:
    """Stream the names of parts that changed."""

    async def alive() -> object:
        return await (await context.podium.engine()).alive()

    topics = [
        Topic("costs", ("usage_recorded",)),
        Topic("work", MOVES, alive),
        Topic("causes", ENDS),
    ]
    return streamed(topic_updates(context.hub, topics, SETTLE_SECONDS))


@router.get("/health/costs")
async def costs(request: Request, context: CurrentContext, person: Viewer) -> Response:
    podium = context.podium
    budgets = (await podium.budget_tracker()).budgets
    costs = await context.costs.look(podium.clock.now(), budgets)
    return page(
        request,
        "health_costs.html",
        costs=costs,
        plot=day_plot(costs.days, costs.day_limit_usd),
        flows=ranked(costs.flows),
        sources=ranked(costs.sources),
    )


@router.get("/health/work")
async def work(request: Request, context: CurrentContext, person: Viewer) -> Response:
    store, engine = await context.store(), context.podium.engine
    queues = await see_queues(store, engine, queues_of(context.podium.configuration))
    workers = await see_workers(store, engine)
    inbox = await see_inbox(store, context.podium.clock, engine)
    return page(
        request,
        "health_work.html",
        waiting=inbox.count,
        queues=queues.queues,
        workers=workers.workers,
    )


@router.get("/health/causes")
async def causes(request: Request, context: CurrentContext, person: Viewer) -> Response:
    causes = await see_causes(await context.store())
    return page(request, "health_causes.html", causes=causes, most=MAX_FAILED)


@router.get("/health/doctor")
async def doctor(request: Request, context: CurrentContext, person: Operator) -> Response:
    """Run the checks of `podium doctor`. Takes seconds and starts programs."""
    checks = await examine(context.podium, context.podium.environ)
    return page(request, "health_doctor.html", findings=checks)
