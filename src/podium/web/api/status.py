"""`/api/v1`: health, queues, workers, agents and budgets."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from podium import __version__
from podium.app.agent_status import Standing, agent_statuses
from podium.app.checkup import CheckFinding, examine
from podium.app.costs import see_budgets
from podium.app.work_request import queues_of
from podium.app.workload import QueuesSeen, WorkersSeen, see_queues, see_workers
from podium.core.decisions import BudgetState, Usage
from podium.core.model import FrozenModel, UtcDatetime
from podium.web.access.authentication import Operator, Viewer
from podium.web.api.requests import NameQuery
from podium.web.context import CurrentContext

health_router = APIRouter(tags=["health"])
liveness = APIRouter(include_in_schema=False)


class Alive(FrozenModel):
    status: Literal["ok"] = "ok"


class Health(FrozenModel):
    """Health that is quick to determine."""

    version: str
    at: UtcDatetime
    queued: int
    running: int
    waiting: int
    needs_human: int
    workers: int
    """Live workers."""
    followers: int
    """Open streams of events."""
    troubles: tuple[str, ...]
    """Problems that block work, with what to do."""


class Checkup(FrozenModel):
    healthy: bool
    checks: tuple[CheckFinding, ...]


@liveness.get("/healthz")
async def is_alive() -> Alive:
    return Alive()


@health_router.get("/health")
async def show_health(context: CurrentContext, person: Viewer) -> Health:
    """Show work in the queues, their workers, and problems."""
    overview = await _queues(context)
    tallies = [queue.tally for queue in overview.queues]
    problems = [queue.trouble for queue in overview.queues if queue.trouble]
    return Health(
        version=__version__,
        at=overview.at,
        queued=sum(tally.queued + tally.delayed for tally in tallies),
        running=sum(tally.running for tally in tallies),
        waiting=sum(tally.waiting for tally in tallies),
        needs_human=sum(tally.needs_human for tally in tallies),
        workers=len({worker for queue in overview.queues for worker in queue.served_by}),
        followers=context.hub.followers,
        troubles=(*problems, *context.podium.problems),
    )


@health_router.get("/queues")
async def list_queues(context: CurrentContext, person: Viewer) -> QueuesSeen:
    """List every queue with its waiting work, status and workers."""
    return await _queues(context)


@health_router.get("/workers")
async def list_workers(context: CurrentContext, person: Viewer) -> WorkersSeen:
    """List live workers with their runs, and runs that dead workers left behind."""
    return await see_workers(await context.store(), context.podium.engine)


@health_router.get("/doctor")
async def see_doctor(context: CurrentContext, person: Operator) -> Checkup:
    """Check the environment. Takes seconds and starts programs."""
    checks = await examine(context.podium, context.podium.environ)
    return Checkup(healthy=all(check.state != "fail" for check in checks), checks=tuple(checks))


async def _queues(context: CurrentContext) -> QueuesSeen:
    specs = queues_of(context.podium.configuration)
    return await see_queues(await context.store(), context.podium.engine, specs)


agents_router = APIRouter(tags=["agents"])


class AgentListed(FrozenModel):
    ready: bool
    standing: Standing


class AgentsListed(FrozenModel):
    agents: tuple[AgentListed, ...]


@agents_router.get("/agents")
async def list_agents(context: CurrentContext, person: Viewer) -> AgentsListed:
    """List the agents of podium.yaml and known programs: whether they are installed, logged in and gated."""
    statuses = await agent_statuses(context.podium)
    return AgentsListed(
        agents=tuple(AgentListed(ready=one.ready, standing=one) for one in statuses)
    )


budgets_router = APIRouter(tags=["budgets"])


class BudgetOverview(FrozenModel):
    today: Usage
    """Usage of all runs today, a day in UTC."""
    run: Usage | None
    """Usage of the named run. None: no run was named."""
    budgets: tuple[BudgetState, ...]
    """The limits and their usage; none for a scope that was not named."""


@budgets_router.get("/budgets")
async def show_budgets(
    context: CurrentContext, person: Viewer, run: NameQuery = ""
) -> BudgetOverview:
    """Show today's usage, and a run's, against the limits in force."""
    tracker = await context.podium.budget_tracker()
    overview = await see_budgets(
        tracker.store, context.podium.clock, tracker.budgets, run=run or None
    )
    return BudgetOverview(today=overview.today, run=overview.of_run, budgets=overview.budgets)
