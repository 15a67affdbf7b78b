"""The page of cost and health: what was spent, what waits, who works, what failed and what the machine lacks."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium import __version__
from podium.usecases import see_inbox, see_queues, see_workers
from podium.usecases.see_costs import MOST_FAILED, see_causes
from podium.web.access.entering import Operator, Viewer
from podium.web.access.people import ConsoleRole
from podium.web.desk import DeskHere
from podium.web.live.looks import Topic, told_anew
from podium.web.live.sse import streamed
from podium.web.pages.health_plots import day_plot, ranked
from podium.web.pages.rendering import page
from podium.wiring.checkup import examine
from podium.wiring.queues import queues_of

router = APIRouter()

SETTLE_SECONDS = 2.0
"""Sums need not follow every call of a busy project."""
ENDS = ("run_cancelled", "run_failed", "run_needed_human", "run_retried", "run_succeeded")
MOVES = (
    *ENDS, "approval_requested", "approval_granted", "approval_rejected", "approval_expired", "run_parked",
    "run_queued", "run_started", "run_waiting", "tool_resolved",
)  # fmt: skip
"""Events after which something else waits, or somebody else works."""


@router.get("/health")
async def health_page(request: Request, desk: DeskHere, person: Viewer) -> Response:
    """The frame; its parts come by themselves, the slow ones when they are there."""
    return page(
        request,
        "health.html",
        version=__version__,
        faults=desk.podium.faults,
        may_examine=person.may(ConsoleRole.OPERATOR),
    )


@router.get("/live/health")
async def health_live(desk: DeskHere, person: Viewer) -> Response:
    """Says which part of the page has something new to show."""

    async def alive() -> object:
        return await (await desk.podium.engine()).alive()

    topics = [
        Topic("costs", ("usage_recorded",)),
        Topic("work", MOVES, alive),
        Topic("causes", ENDS),
    ]
    return streamed(told_anew(desk.hub, topics, SETTLE_SECONDS))


@router.get("/health/costs")
async def costs(request: Request, desk: DeskHere, person: Viewer) -> Response:
    podium = desk.podium
    budgets = (await podium.purse()).budgets
    seen = await desk.costs.look(podium.clock.now(), budgets)
    return page(
        request,
        "health_costs.html",
        costs=seen,
        plot=day_plot(seen.days, seen.day_limit_usd),
        flows=ranked(seen.flows),
        sources=ranked(seen.sources),
    )


@router.get("/health/work")
async def work(request: Request, desk: DeskHere, person: Viewer) -> Response:
    store, engine = await desk.store(), desk.podium.engine
    queues = await see_queues(store, engine, queues_of(desk.podium.configuration))
    workers = await see_workers(store, engine)
    inbox = await see_inbox(store, desk.podium.clock, engine)
    return page(
        request,
        "health_work.html",
        waiting=inbox.count,
        queues=queues.queues,
        workers=workers.workers,
    )


@router.get("/health/causes")
async def causes(request: Request, desk: DeskHere, person: Viewer) -> Response:
    found = await see_causes(await desk.store())
    return page(request, "health_causes.html", causes=found, most=MOST_FAILED)


@router.get("/health/doctor")
async def doctor(request: Request, desk: DeskHere, person: Operator) -> Response:
    """As `podium doctor` tells it. It takes seconds and starts programs."""
    found = await examine(desk.podium, desk.podium.environ)
    return page(request, "health_doctor.html", findings=found)
