"""The page of cost and health: what was spent, what waits, who works, what failed and what the machine lacks."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium import __version__
from podium.usecases import see_queues, see_workers
from podium.usecases.see_costs import MOST_FAILED, see_causes
from podium.web.access.entering import Operator, Viewer
from podium.web.access.people import ConsoleRole
from podium.web.desk import DeskHere
from podium.web.pages.health_plots import day_plot, ranked
from podium.web.pages.rendering import page
from podium.wiring.checkup import examine
from podium.wiring.queues import queues_of

router = APIRouter()


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
    return page(request, "health_work.html", queues=queues.queues, workers=workers.workers)


@router.get("/health/causes")
async def causes(request: Request, desk: DeskHere, person: Viewer) -> Response:
    found = await see_causes(await desk.store())
    return page(request, "health_causes.html", causes=found, most=MOST_FAILED)


@router.get("/health/doctor")
async def doctor(request: Request, desk: DeskHere, person: Operator) -> Response:
    """As `podium doctor` tells it. It takes seconds and starts programs."""
    found = await examine(desk.podium, desk.podium.environ)
    return page(request, "health_doctor.html", findings=found)
