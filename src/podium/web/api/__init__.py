"""The typed API, `/api/v1`: the use cases of the command line, for programs."""

from fastapi import APIRouter

from podium.core.job import all_jobs, load
from podium.web.api import approvals, records, runs, schema, status


def api_router() -> APIRouter:
    """Router of the whole API, the parts of the jobs included."""
    router = APIRouter(generate_unique_id_function=schema.name_of)
    for part in (
        runs.runs_router,
        runs.starting_router,
        records.events_router,
        approvals.router,
    ):
        router.include_router(part)
    for job in all_jobs():
        if job.api:
            router.include_router(load(job.api))
    for part in (
        records.receipts_router,
        records.traces_router,
        status.agents_router,
        status.budgets_router,
        status.health_router,
        schema.router,
    ):
        router.include_router(part)
    return router
