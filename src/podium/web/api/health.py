"""`/api/v1/health` and around it: whether work goes on, and who does it. `/healthz` says only that it answers."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from podium import __version__
from podium.app.checkup import Finding, examine
from podium.app.work_request import queues_of
from podium.app.workload import QueuesSeen, WorkersSeen, see_queues, see_workers
from podium.core.model import FrozenModel, UtcDatetime
from podium.web.access.authentication import Operator, Viewer
from podium.web.context import CurrentContext

router = APIRouter(tags=["health"])
liveness = APIRouter(include_in_schema=False)


class Alive(FrozenModel):
    status: Literal["ok"] = "ok"


class Health(FrozenModel):
    """What is quickly known of how it goes."""

    version: str
    at: UtcDatetime
    queued: int
    running: int
    waiting: int
    needs_human: int
    workers: int
    """Those alive."""
    followers: int
    """Open streams of events."""
    troubles: tuple[str, ...]
    """Why something does not go on, and what to do."""


class Checkup(FrozenModel):
    healthy: bool
    checks: tuple[Finding, ...]


@liveness.get("/healthz")
async def is_alive() -> Alive:
    return Alive()


@router.get("/health")
async def show_health(context: CurrentContext, person: Viewer) -> Health:
    """Work in the queues, who serves them, and what is in the way."""
    seen = await _queues(context)
    tallies = [each.tally for each in seen.queues]
    troubles = [each.trouble for each in seen.queues if each.trouble]
    return Health(
        version=__version__,
        at=seen.at,
        queued=sum(each.queued + each.delayed for each in tallies),
        running=sum(each.running for each in tallies),
        waiting=sum(each.waiting for each in tallies),
        needs_human=sum(each.needs_human for each in tallies),
        workers=len({worker for each in seen.queues for worker in each.served_by}),
        followers=context.hub.followers,
        troubles=(*troubles, *context.podium.problems),
    )


@router.get("/queues")
async def list_queues(context: CurrentContext, person: Viewer) -> QueuesSeen:
    """Every queue: what waits in it, how it goes and who serves it."""
    return await _queues(context)


@router.get("/workers")
async def list_workers(context: CurrentContext, person: Viewer) -> WorkersSeen:
    """Workers alive, what each holds, and what dead ones left behind."""
    return await see_workers(await context.store(), context.podium.engine)


@router.get("/doctor")
async def see_doctor(context: CurrentContext, person: Operator) -> Checkup:
    """Check what is really usable on this machine. It takes seconds and starts programs."""
    found = await examine(context.podium, context.podium.environ)
    return Checkup(healthy=all(each.state != "fail" for each in found), checks=tuple(found))


async def _queues(context: CurrentContext) -> QueuesSeen:
    specs = queues_of(context.podium.configuration)
    return await see_queues(await context.store(), context.podium.engine, specs)
