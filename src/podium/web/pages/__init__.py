"""Server-rendered pages, refreshed by the same events as the API's streams."""

from fastapi import APIRouter

from podium.core.job import all_jobs, load
from podium.web.pages import health, inbox, run, runs, sign_in


def pages_router() -> APIRouter:
    """Router of all pages, those of the jobs included."""
    router = APIRouter()
    for part in (sign_in, inbox, runs, run):
        router.include_router(part.router)
    for job in all_jobs():
        if job.pages:
            router.include_router(load(job.pages))
    router.include_router(health.router)
    return router
