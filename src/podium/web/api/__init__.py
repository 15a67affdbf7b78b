"""The typed API, `/api/v1`: the use cases of the command line, for programs."""

from fastapi import APIRouter

from podium.core.job import all_jobs, load
from podium.web.api import (
    agents,
    approvals,
    budgets,
    events,
    health,
    receipts,
    runs,
    schema,
    submissions,
    traces,
)


def api_router() -> APIRouter:
    """Router of the whole API, the parts of the jobs included."""
    router = APIRouter(generate_unique_id_function=schema.name_of)
    for part in (runs, submissions, events, approvals):
        router.include_router(part.router)
    for job in all_jobs():
        if job.api:
            router.include_router(load(job.api))
    for part in (receipts, traces, agents, budgets, health, schema):
        router.include_router(part.router)
    return router
