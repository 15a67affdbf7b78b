"""The console's ASGI app: guards, API and pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from podium import __version__
from podium.core.job import all_jobs, load
from podium.web.access.guards import Guards
from podium.web.api import api_router
from podium.web.api.status import liveness
from podium.web.chat import chat_router, links_router
from podium.web.context import WebContext
from podium.web.pages import pages_router
from podium.web.problems import add_error_handlers

STATIC = Path(__file__).parent / "static"


def build_app(context: WebContext) -> FastAPI:
    """Build the app. Its context is closed when serving ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await context.close()

    app = FastAPI(
        title="Podium",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.context = context
    app.include_router(api_router(), prefix="/api/v1")
    app.include_router(liveness)
    for job in all_jobs():
        if job.sockets:
            app.include_router(load(job.sockets), prefix="/api/v1")
        if job.webhooks and (webhooks := load(job.webhooks)(context.podium)) is not None:
            app.include_router(webhooks, prefix="/hooks", include_in_schema=False)
    app.include_router(pages_router(), include_in_schema=False)
    app.include_router(links_router(context.podium))
    app.include_router(chat_router(context.podium))
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    add_error_handlers(app)
    app.add_middleware(Guards, context=context)
    return app
