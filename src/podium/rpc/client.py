"""The client: terminals of a Podium in another process, as if they were here."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import grpc
from grpc import aio

from podium.core.errors import AgentLost, BadInput
from podium.core.terminals import (
    KeysPressed,
    PairSize,
    Terminal,
    TerminalPicture,
    TerminalState,
    TerminalUpdate,
)
from podium.core.turns import Side
from podium.platform.private_sockets import refuse_long
from podium.rpc.connection import Certificates, Greeting
from podium.rpc.generated import podium_pb2 as pb
from podium.rpc.generated.podium_pb2_grpc import TerminalsStub
from podium.rpc.messages import SIDES, picture_in, raising_errors, state_in, terminal_out

_HELLO_SECONDS = 10.0
_QUICK_SECONDS = 30.0
_START_SECONDS = 300.0
"""Timeout of starting two programs with their roles."""


@asynccontextmanager
async def reach(socket: Path) -> AsyncIterator[RemoteTerminals]:
    """Connect to the Podium at this socket.

    Raises `AgentLost` when there is none, `BadInput` for a socket of somebody else, who would be told all keys.
    """
    target = _own(socket)
    local = grpc.local_channel_credentials(grpc.LocalConnectionType.UDS)
    async with aio.secure_channel(target, local) as channel:
        yield RemoteTerminals(channel, str(socket))


def _own(socket: Path) -> str:
    refuse_long(socket)
    try:
        owner = socket.stat().st_uid
    except OSError:
        raise AgentLost(f"no Podium is listening on {str(socket)!r}; start one") from None
    if owner != os.geteuid():
        raise BadInput(f"the socket {str(socket)!r} belongs to another user; choose another")
    return f"unix:{socket.absolute()}"


@asynccontextmanager
async def reach_tls(
    host: str, port: int, certificates: Certificates
) -> AsyncIterator[RemoteTerminals]:
    """Connect to a Podium on another machine. Both ends present certificates."""
    where = f"{host}:{port}"
    async with aio.secure_channel(where, certificates.for_client()) as channel:
        yield RemoteTerminals(channel, where)


class RemoteTerminals:
    """Implements the port `Terminals`. Errors of the other Podium are raised here."""

    def __init__(self, channel: aio.Channel, where: str) -> None:
        self._stub = TerminalsStub(channel)
        self._where = where

    async def hello(self) -> Greeting:
        """Greet the server. Raises `AgentLost` or `TimedOut` when nothing answers, `NotPossibleNow` for a version without greeting."""
        with raising_errors(self._where):
            response = await self._stub.Hello(pb.HelloRequest(), timeout=_HELLO_SECONDS)
        return Greeting(version=response.version, settings=response.settings)

    async def start(self, pair: str) -> list[TerminalState]:
        with raising_errors(self._where):
            response = await self._stub.StartTui(
                pb.StartTuiRequest(pair=pair), timeout=_START_SECONDS
            )
        return [state_in(state) for state in response.states]

    async def states(self, pair: str) -> list[TerminalState]:
        states: dict[Side, TerminalState] = {}
        async with aclosing(self._updates(pair, _QUICK_SECONDS)) as news:
            async for update in news:
                states[update.state.terminal.side] = update.state
                if len(states) == len(SIDES):
                    return [states[side] for side in SIDES]
        raise AgentLost(
            f"lost the connection to the Podium at {self._where!r}; check that it is running"
        )

    async def send_keys(self, pressed: KeysPressed) -> None:
        request = pb.SendKeysRequest(terminal=terminal_out(pressed.terminal), keys=pressed.keys)
        with raising_errors(self._where):
            await self._stub.SendKeys(request, timeout=_QUICK_SECONDS)

    async def capture(self, terminal: Terminal, *, whole: bool) -> TerminalPicture:
        request = pb.CaptureRequest(terminal=terminal_out(terminal), whole=whole)
        with raising_errors(self._where):
            response = await self._stub.Capture(request, timeout=_QUICK_SECONDS)
        return picture_in(response.picture)

    async def resize(self, size: PairSize) -> None:
        request = pb.ResizeRequest(pair=size.pair, columns=size.columns, rows=size.rows)
        with raising_errors(self._where):
            await self._stub.Resize(request, timeout=_QUICK_SECONDS)

    async def resume(self, terminal: Terminal) -> TerminalState:
        request = pb.ResumeRequest(terminal=terminal_out(terminal))
        with raising_errors(self._where):
            response = await self._stub.Resume(request, timeout=_START_SECONDS)
        return state_in(response.state)

    def watch(self, pair: str) -> AsyncGenerator[TerminalUpdate, None]:
        return self._updates(pair, None)

    async def _updates(
        self, pair: str, timeout_seconds: float | None
    ) -> AsyncGenerator[TerminalUpdate, None]:
        call = self._stub.Watch(pb.WatchRequest(pair=pair), timeout=timeout_seconds)
        try:
            with raising_errors(self._where):
                async for response in call:
                    picture = picture_in(response.picture) if response.HasField("picture") else None
                    yield TerminalUpdate(state=state_in(response.state), picture=picture)
        finally:
            call.cancel()
