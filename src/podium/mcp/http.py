"""The door over streamable HTTP, for clients of this machine that know the token."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from podium.domain.errors import BadInput, UserMustAct

PATH = "/mcp"
LARGEST_REQUEST_BYTES = 2_000_000
LEAVING_SECONDS = 2
MOST_CONNECTIONS = 200
LEAST_TOKEN_CHARACTERS = 16
TOKEN_VARIABLE = "PODIUM_MCP_TOKEN"  # noqa: S105 — its name, not its value


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Whoever opened the Podium ends everything in order.
        yield


class TokenAsked:
    """Lets pass whoever shows the token. Nothing is told to anybody else, nor read from them."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._knows(Headers(scope=scope)):
            answer = PlainTextResponse(
                "a bearer token is needed\n", 401, headers={"WWW-Authenticate": "Bearer"}
            )
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, headers: Headers) -> bool:
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(
            shown.strip().encode(), self._token
        )


@asynccontextmanager
async def served_over_http(
    server: Server[Any], host: str, port: int, token: str
) -> AsyncIterator[str]:
    """Serve while open, and give the URL. `host` must be this machine's own, port 0 any free one.

    Raises `BadInput` for a token that could be guessed, `UserMustAct` when nothing can listen there.
    """
    if len(token) < LEAST_TOKEN_CHARACTERS:
        raise BadInput(
            f"{TOKEN_VARIABLE} has {len(token)} characters; give it {LEAST_TOKEN_CHARACTERS} or more, or unset it and "
            "one is made"
        )
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=LARGEST_REQUEST_BYTES,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[f"{each}:{port}" for each in (name, "localhost")],
            allowed_origins=[f"http://{each}:{port}" for each in (name, "localhost")],
        ),
        host=host,
    )
    config = uvicorn.Config(
        TokenAsked(app, token),
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=LEAVING_SECONDS,
    )
    serving = _Server(config)
    task = asyncio.create_task(serving.serve(sockets=[listening]))
    try:
        yield f"http://{name}:{port}{PATH}"
    finally:
        serving.should_exit = True
        await task
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UserMustAct(
            f"nothing can listen at {host}:{port} ({error.strerror}); name a free one with --http"
        ) from error
    listening.setblocking(False)
    return listening
