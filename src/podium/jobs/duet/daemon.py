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
async def open_terminals(
    podium: Podium,
    variables: Mapping[str, str],
    at: str = "",
    certificates: Path | None = None,
    *,
    notify: Callable[[str], None],
) -> AsyncIterator[TerminalPairs]:
    """Open the terminals at a socket or HOST:PORT; without `at` those of this project's daemon, or its own.

    `notify` gets the reason why an existing daemon is not used. Raises `BadInput` for an invalid address,
    `AgentLost` when nothing answers there.
    """
    async with AsyncExitStack() as stack:
        if at:
            yield await stack.enter_async_context(_reached(at, certificates))
            return
        daemon = await _daemon(podium, stack, notify)
        yield daemon or terminals_of_project(podium, variables)


def _reached(at: str, certificates: Path | None) -> AbstractAsyncContextManager[RemoteTerminals]:
    if "/" in at:
        return reach(Path(at))
    host, port = address_in(at)
    return reach_tls(host, port, certificates_in(certificates))


async def _daemon(
    podium: Podium, stack: AsyncExitStack, notify: Callable[[str], None]
) -> TerminalPairs | None:
    """Connect to the project's daemon. None: it does not answer, or has another version or settings."""
    if not is_served(podium):
        return None
    try:
        remote = await stack.enter_async_context(reach(api_socket(podium)))
        theirs = await remote.hello()
    except PodiumError as error:
        notify(f"continuing without the daemon of `podium duet serve`: {error}")
        return None
    ours = _greeting(podium)
    if theirs == ours:
        return remote
    other = (
        "other settings"
        if theirs.version == ours.version
        else f"version {theirs.version!r} instead of {ours.version!r}"
    )
    notify(f"continuing without the daemon of `podium duet serve`, which has {other}; restart it")
    return None


@asynccontextmanager
async def served_terminals(
    podium: Podium, variables: Mapping[str, str], listen: str = "", certificates: Path | None = None
) -> AsyncIterator[list[str]]:
    """Serve this project's terminals at its socket, and with `listen` to other machines. Yields the addresses."""
    socket, greeting = api_socket(podium), _greeting(podium)
    terminals = terminals_of_project(podium, variables)
    async with AsyncExitStack() as stack:
        where = [str(socket)]
        if listen:
            host, port = address_in(listen)
            tls = serve_tls(terminals, host, port, certificates_in(certificates), greeting)
            where.append(f"{host}:{await stack.enter_async_context(tls)}")
        await stack.enter_async_context(serve(terminals, socket, greeting))
        yield where


def _greeting(podium: Podium) -> Greeting:
    return Greeting(settings=settings_digest(podium))


def address_in(written: str) -> tuple[str, int]:
    """Parse HOST:PORT. Raises `BadInput` if it is invalid."""
    host, _, port = written.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise BadInput(f"{written!r} is not an address; use HOST:PORT, or the path of a socket")
    return host, int(port)


def certificates_in(folder: Path | None) -> Certificates:
    """Return `key.pem`, `certificate.pem` and `authority.pem` of a folder. Raises `BadInput` without one."""
    if folder is None:
        raise BadInput(
            "HOST:PORT needs certificates on both ends; pass a folder with key.pem, certificate.pem and authority.pem "
            "with --papers, or forward the socket over SSH"
        )
    return Certificates(
        key=folder / "key.pem",
        certificate=folder / "certificate.pem",
        authority=folder / "authority.pem",
    )
