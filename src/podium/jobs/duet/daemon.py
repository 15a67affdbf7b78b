"""Client and server of `podium duet serve`: terminals of a project in another process or on another machine (needs gRPC)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from podium.app.app import Podium
from podium.core.errors import BadInput, PodiumError
from podium.jobs.duet.project_terminals import (
    api_socket,
    is_served,
    settings_digest,
    terminals_of_project,
)
from podium.ports import TerminalPairs
from podium.rpc.client import RemoteTerminals, reach, reach_tls
from podium.rpc.connection import Certificates, Greeting
from podium.rpc.server import serve, serve_tls


@asynccontextmanager
async def found_terminals(
    podium: Podium,
    variables: Mapping[str, str],
    at: str = "",
    papers: Path | None = None,
    *,
    tell: Callable[[str], None],
) -> AsyncIterator[TerminalPairs]:
    """Those served at a socket or HOST:PORT; without, those that this project's daemon serves, or its own.

    `tell` hears why a daemon that is there is not used. Raises `BadInput` for an address that cannot be meant,
    `AgentLost` when nobody answers there.
    """
    async with AsyncExitStack() as stack:
        if at:
            yield await stack.enter_async_context(_reached(at, papers))
            return
        daemon = await _daemon(podium, stack, tell)
        yield daemon or terminals_of_project(podium, variables)


def _reached(at: str, papers: Path | None) -> AbstractAsyncContextManager[RemoteTerminals]:
    if "/" in at:
        return reach(Path(at))
    host, port = address_in(at)
    return reach_tls(host, port, certificates_in(papers))


async def _daemon(
    podium: Podium, stack: AsyncExitStack, tell: Callable[[str], None]
) -> TerminalPairs | None:
    """The project's own, when it answers and would do just what is done here."""
    if not is_served(podium):
        return None
    try:
        remote = await stack.enter_async_context(reach(api_socket(podium)))
        theirs = await remote.hello()
    except PodiumError as error:
        tell(f"going on without the daemon of `podium duet serve`: {error}")
        return None
    ours = _greeting(podium)
    if theirs == ours:
        return remote
    other = (
        "other settings"
        if theirs.version == ours.version
        else f"version {theirs.version!r}, this is {ours.version!r}"
    )
    tell(
        f"going on without the daemon of `podium duet serve`, which has {other}; end it and start it anew"
    )
    return None


@asynccontextmanager
async def served_terminals(
    podium: Podium, variables: Mapping[str, str], listen: str = "", papers: Path | None = None
) -> AsyncIterator[list[str]]:
    """Serve this project's terminals at its socket, and with `listen` to other machines. Gives where."""
    socket, greeting = api_socket(podium), _greeting(podium)
    terminals = terminals_of_project(podium, variables)
    async with AsyncExitStack() as stack:
        where = [str(socket)]
        if listen:
            host, port = address_in(listen)
            tls = serve_tls(terminals, host, port, certificates_in(papers), greeting)
            where.append(f"{host}:{await stack.enter_async_context(tls)}")
        await stack.enter_async_context(serve(terminals, socket, greeting))
        yield where


def _greeting(podium: Podium) -> Greeting:
    return Greeting(settings=settings_digest(podium))


def address_in(written: str) -> tuple[str, int]:
    """Raises `BadInput` for what is no HOST:PORT."""
    host, _, port = written.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise BadInput(f"{written!r} is no address; write HOST:PORT, or the path of a socket")
    return host, int(port)


def certificates_in(folder: Path | None) -> Certificates:
    """`key.pem`, `certificate.pem` and `authority.pem` of a folder. Raises `BadInput` when none is named."""
    if folder is None:
        raise BadInput(
            "between machines both ends show certificates; name a folder with key.pem, certificate.pem and authority.pem "
            "by --papers, or forward the socket by SSH"
        )
    return Certificates(
        key=folder / "key.pem",
        certificate=folder / "certificate.pem",
        authority=folder / "authority.pem",
    )
