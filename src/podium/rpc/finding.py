"""Terminals wherever they are: of a Podium that serves them, or of this one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from podium.domain.errors import BadInput
from podium.ports import Terminals
from podium.rpc.certificates import Certificates
from podium.rpc.reaching import reach, reach_tls
from podium.rpc.serving import serve, serve_tls
from podium.wiring import Podium
from podium.wiring.duet_api import api_socket, terminals_of_project


@asynccontextmanager
async def found_terminals(
    podium: Podium, variables: Mapping[str, str], at: str = "", papers: Path | None = None
) -> AsyncIterator[Terminals]:
    """Those served at a socket or HOST:PORT; without, those that this project's daemon serves, or its own.

    Raises `BadInput` for an address that cannot be meant, `AgentLost` when nobody answers there.
    """
    socket = api_socket(podium)
    async with AsyncExitStack() as stack:
        if at and "/" not in at:
            host, port = address_in(at)
            remote = reach_tls(host, port, certificates_in(papers))
            yield await stack.enter_async_context(remote)
        elif at or socket.exists():
            yield await stack.enter_async_context(reach(Path(at) if at else socket))
        else:
            yield terminals_of_project(podium, variables)


@asynccontextmanager
async def served_terminals(
    podium: Podium, variables: Mapping[str, str], listen: str = "", papers: Path | None = None
) -> AsyncIterator[list[str]]:
    """Serve this project's terminals at its socket, and with `listen` to other machines. Gives where."""
    socket = api_socket(podium)
    terminals = terminals_of_project(podium, variables)
    async with AsyncExitStack() as stack:
        where = [str(socket)]
        if listen:
            host, port = address_in(listen)
            tls = serve_tls(terminals, host, port, certificates_in(papers))
            where.append(f"{host}:{await stack.enter_async_context(tls)}")
        await stack.enter_async_context(serve(terminals, socket))
        yield where


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
