"""HTTP server of the console beside other work in the same process, with a deadline for the first byte."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from podium.core.errors import BadInput, UserMustAct
from podium.platform.private_sockets import sole_server
from podium.web.access.host_names import is_loopback, named
from podium.web.access.limits import MAX_HEAD_BYTES
from podium.web.settings import ConsoleSettings


def deadline_protocol(head_seconds: float) -> type[H11Protocol]:
    """HTTP protocol class with a deadline for the request head.

    The server itself has one only between two requests: who connects and says a byte an hour would
    hold a file for as long.
    """

    class _Configured(_DeadlineProtocol):
        seconds = head_seconds

    return _Configured


class _DeadlineProtocol(H11Protocol):
    seconds = 10.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in its base
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_served():
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_served(self) -> bool:
        upgraded = self.transport.get_protocol() is not self
        # There is none before the first request.
        return upgraded or not getattr(self.cycle, "response_complete", True)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._is_served():
            self.transport.abort()


SHUTDOWN_SECONDS = 2
"""Grace period of open requests at shutdown; streams end at once."""
MAX_SOCKET_BYTES = 1_000_000
"""Maximum size of a websocket message."""
BACKLOG = 2048
OTHER_CONNECTIONS = 400
"""Connections and files besides streams."""
START_POLL_SECONDS = 0.01
"""Polling interval at startup: the server has no event for having started."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # The door of the command line ends everything in order.
        yield


@asynccontextmanager
async def served(app: FastAPI, settings: ConsoleSettings) -> AsyncIterator[str]:
    """Serve while open; yield the URL or the socket's path.

    Raises `BadInput` for an address that needs TLS and has none, and for certificates that will not do,
    `UserMustAct` when nothing can listen there.
    """
    check_address(settings)
    config = _config(app, settings)
    _allow_files(settings.most_streams + OTHER_CONNECTIONS)
    with _listening(settings) as listening:
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]), name="podium console")
        try:
            await _begun(server, serving)
            yield _url(listening, settings)
        finally:
            # First of all the streams, which would else be waited for.
            await app.state.context.close()
            server.should_exit = True
            await serving


async def _begun(server: _Server, serving: asyncio.Task[None]) -> None:
    """Return once the server accepts requests. Raises `UserMustAct` when it ended instead, before a token is shown."""
    while not server.started:
        if serving.done():
            serving.result()
            raise UserMustAct("the console could not start; see its log")
        await asyncio.sleep(START_POLL_SECONDS)


def check_address(settings: ConsoleSettings) -> None:
    """Raise `BadInput` when tokens would travel in clear text, or the console's host name is unknown."""
    for name in settings.names:
        named(name)
    if settings.behind_proxy and not settings.names:
        raise BadInput("--behind-proxy needs the public host name: --behind-proxy --name HOST")
    if (settings.certificate is None) != (settings.key is None):
        raise BadInput("TLS needs both --cert and --key")
    local = settings.socket is not None or is_loopback(settings.host)
    if not local and not settings.is_secure:
        raise BadInput(
            f"{settings.host} is reachable from other machines, and tokens would be sent in clear text: pass "
            "--cert and --key, or --behind-proxy --name HOST if a proxy terminates TLS; "
            "or omit --host to serve this machine only"
        )


def _config(app: FastAPI, settings: ConsoleSettings) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=deadline_protocol(settings.head_seconds),
        loop="none",
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        # The guards look at what proxies tell.
        proxy_headers=False,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        ws_max_size=MAX_SOCKET_BYTES,
        limit_concurrency=settings.most_streams + OTHER_CONNECTIONS,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    # Whoever sends nonsense is answered; a line for each would only let them fill the log.
    logging.getLogger("uvicorn.error").addFilter(_is_error)
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise BadInput(
            f"cannot load the TLS certificate {settings.certificate} and key {settings.key}: {error}"
        ) from error
    return config


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno > logging.WARNING and record.exc_info is not None


def _allow_files(count: int) -> None:
    """Raise the limit of open files: every stream is one, and some systems allow few by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


@contextmanager
def _listening(settings: ConsoleSettings) -> Iterator[socket.socket]:
    if settings.socket is None:
        with contextlib.closing(_at_address(settings)) as listening:
            yield listening
        return
    with sole_server(settings.socket) as path, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(BACKLOG)
        listening.setblocking(False)
        yield listening


def _at_address(settings: ConsoleSettings) -> socket.socket:
    where = (settings.host, settings.port)
    try:
        infos = socket.getaddrinfo(*where, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        listening = socket.create_server(where, family=infos[0][0], backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise UserMustAct(
            f"cannot listen on {settings.host}:{settings.port} ({error}); another Podium may be running; "
            "choose a free port with --port"
        ) from error
    # The event loop does so only for sockets that were made by naming TCP; without it every answer waits
    # 40 ms for the acknowledgement of its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setblocking(False)
    return listening


def _url(listening: socket.socket, settings: ConsoleSettings) -> str:
    if settings.socket is not None:
        return str(settings.socket)
    host, port = listening.getsockname()[:2]
    scheme = "https" if settings.certificate else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
