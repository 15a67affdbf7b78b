"""Server of terminals, for processes that may open its socket or have a certificate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from podium.core.errors import NotPossibleNow
from podium.core.terminals import KeysPressed, PairSize
from podium.platform.private_sockets import sole_server
from podium.ports import TerminalPairs
from podium.rpc.connection import Certificates, Greeting
from podium.rpc.generated import podium_pb2 as pb
from podium.rpc.generated.podium_pb2_grpc import (
    TerminalsServicer,
    add_TerminalsServicer_to_server,
)
from podium.rpc.messages import DEFAULT_PAIR, picture_out, reporting_errors, state_out, terminal_in

_MAX_CALLS = 100
"""Concurrent calls; more are refused."""
_GRACE_SECONDS = 1.0

Context = aio.ServicerContext[Any, Any]
_SOME_PODIUM = Greeting()


@asynccontextmanager
async def serve(
    terminals: TerminalPairs, socket: Path, greeting: Greeting = _SOME_PODIUM
) -> AsyncIterator[None]:
    """Serve at this socket, which only this user can open, while open.

    Raises `LockHeld` when another process does, `BadInput` for a path that is too long or open to others.
    """
    with sole_server(socket) as path:
        server = _server(terminals, greeting)
        local = grpc.local_server_credentials(grpc.LocalConnectionType.UDS)
        server.add_secure_port(f"unix:{path}", local)
        path.chmod(0o600)
        async with _running(server):
            yield


@asynccontextmanager
async def serve_tls(
    terminals: TerminalPairs,
    host: str,
    port: int,
    certificates: Certificates,
    greeting: Greeting = _SOME_PODIUM,
) -> AsyncIterator[int]:
    """Serve clients with a certificate of the authority, while open. Yields the port; 0 picks a free one.

    Raises `BadInput` for certificates that will not do, `NotPossibleNow` when the address cannot be had.
    """
    server = _server(terminals, greeting)
    credentials = certificates.for_server()
    try:
        bound = server.add_secure_port(f"{host}:{port}", credentials)
    except RuntimeError:
        raise NotPossibleNow(
            f"{host}:{port} is already in use; choose another address, or stop the program that uses it"
        ) from None
    async with _running(server):
        yield bound


def _server(terminals: TerminalPairs, greeting: Greeting) -> aio.Server:
    server = aio.server(maximum_concurrent_rpcs=_MAX_CALLS, options=(("grpc.so_reuseport", 0),))
    add_TerminalsServicer_to_server(_TerminalsService(terminals, greeting), server)
    return server


@asynccontextmanager
async def _running(server: aio.Server) -> AsyncIterator[None]:
    await server.start()
    try:
        yield
    finally:
        await server.stop(_GRACE_SECONDS)


class _TerminalsService(TerminalsServicer):
    """Translates calls to the port `TerminalPairs` and back."""

    def __init__(self, terminals: TerminalPairs, greeting: Greeting) -> None:
        self._terminals = terminals
        self._greeting = greeting

    async def Hello(  # noqa: N802 - named in podium.proto
        self, request: pb.HelloRequest, context: Context
    ) -> pb.HelloResponse:
        return pb.HelloResponse(version=self._greeting.version, settings=self._greeting.settings)

    async def StartTui(  # noqa: N802 - named in podium.proto
        self, request: pb.StartTuiRequest, context: Context
    ) -> pb.StartTuiResponse:
        async with reporting_errors(context):
            states = await self._terminals.start(request.pair or DEFAULT_PAIR)
            return pb.StartTuiResponse(states=map(state_out, states))

    async def SendKeys(  # noqa: N802 - named in podium.proto
        self, request: pb.SendKeysRequest, context: Context
    ) -> pb.SendKeysResponse:
        async with reporting_errors(context):
            terminal = terminal_in(request.terminal)
            await self._terminals.send_keys(
                KeysPressed(terminal=terminal, keys=tuple(request.keys))
            )
            return pb.SendKeysResponse()

    async def Capture(  # noqa: N802 - named in podium.proto
        self, request: pb.CaptureRequest, context: Context
    ) -> pb.CaptureResponse:
        async with reporting_errors(context):
            terminal = terminal_in(request.terminal)
            picture = await self._terminals.capture(terminal, whole=request.whole)
            return pb.CaptureResponse(picture=picture_out(picture))

    async def Resize(  # noqa: N802 - named in podium.proto
        self, request: pb.ResizeRequest, context: Context
    ) -> pb.ResizeResponse:
        async with reporting_errors(context):
            pair = request.pair or DEFAULT_PAIR
            size = PairSize(pair=pair, columns=request.columns, rows=request.rows)
            await self._terminals.resize(size)
            return pb.ResizeResponse()

    async def Resume(  # noqa: N802 - named in podium.proto
        self, request: pb.ResumeRequest, context: Context
    ) -> pb.ResumeResponse:
        async with reporting_errors(context):
            state = await self._terminals.resume(terminal_in(request.terminal))
            return pb.ResumeResponse(state=state_out(state))

    async def Watch(  # noqa: N802 - named in podium.proto
        self, request: pb.WatchRequest, context: Context
    ) -> AsyncIterator[pb.WatchResponse]:
        news = self._terminals.watch(request.pair or DEFAULT_PAIR)
        async with reporting_errors(context), aclosing(news):
            async for update in news:
                picture = picture_out(update.picture) if update.picture else None
                yield pb.WatchResponse(state=state_out(update.state), picture=picture)
