"""Serving the console while something else goes on in the same process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from podium.domain.errors import UserMustAct
from podium.web.settings import ConsoleSettings

LEAVING_SECONDS = 2
"""How long those who are being answered may take when serving ends; streams are ended at once."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # The door of the command line ends everything in order.
        yield


@asynccontextmanager
async def served(app: FastAPI, settings: ConsoleSettings) -> AsyncIterator[str]:
    """Serve while open, and give the URL. Raises `UserMustAct` when nothing can listen there."""
    listening = _listen(settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        proxy_headers=settings.behind_proxy,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        timeout_graceful_shutdown=LEAVING_SECONDS,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield _url(listening, settings)
    finally:
        server.should_exit = True
        await serving
        listening.close()


def _listen(settings: ConsoleSettings) -> socket.socket:
    try:
        listening = socket.create_server((settings.host, settings.port), backlog=2048)
    except OSError as error:
        raise UserMustAct(
            f"nothing can listen at {settings.host}:{settings.port} ({error.strerror}); another Podium may, "
            "so name a free one with --port"
        ) from error
    listening.setblocking(False)
    return listening


def _url(listening: socket.socket, settings: ConsoleSettings) -> str:
    host, port = listening.getsockname()[:2]
    scheme = "https" if settings.certificate else "http"
    return f"{scheme}://{host}:{port}"
