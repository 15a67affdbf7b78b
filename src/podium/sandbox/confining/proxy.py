"""The way out of a confined tree: a proxy that knows hosts by name and lets only listed ones pass.

The tree has a loopback of its own. Its listening sockets are opened inside and served from here,
outside, so that nothing of the machine's network is there inside.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podium.sandbox.confining.upstream import (
    Destination,
    NotReached,
    Streams,
    UpstreamProxy,
    is_listed,
    read_destination,
)

if TYPE_CHECKING:
    # Not loaded beside a terminal, where this runs without any package.
    from podium.core.processes import Confinement
    from podium.sandbox.confining.preparation import Serve

_CHUNK_BYTES = 65_536
_FIRST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) (HTTP/1\.[01])")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,12})[ \t]*(?:;[\t -~]*)?\r\n")
_LENGTH = re.compile(r"[0-9]{1,15}")


# Requests as a proxy hears them: the head, read strictly, and exactly the body that it declares. What two programs read
# differently is how one request hides inside another: a line that ends in a bare line feed, a folded header, two
# lengths. Such a request is refused and never repaired.


class MalformedRequest(Exception):
    """This is no request that may be passed on."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """The head of what a program asked its proxy."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    length: int | None
    """The bytes of its body; None when it comes in chunks."""


async def read_request(reader: asyncio.StreamReader) -> ProxyRequest:
    """Raises `MalformedRequest`."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        asked = _FIRST_LINE.fullmatch(first)
        urlsplit(asked[2] if asked else "")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise MalformedRequest from None
    matches = [_HEADER.fullmatch(line) for line in lines]
    headers = tuple((header[1], header[2]) for header in matches if header)
    if asked is None or len(headers) != len(matches):
        raise MalformedRequest
    return ProxyRequest(asked[1], asked[2], asked[3], headers, _length(headers))


def _length(headers: tuple[tuple[str, str], ...]) -> int | None:
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    codings = [value for name, value in headers if name.lower() == "transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise MalformedRequest
    if codings:
        if codings[0].lower() != "chunked":
            raise MalformedRequest
        return None
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise MalformedRequest
    return int(lengths[0]) if lengths else 0


def as_origin_form(request: ProxyRequest, destination: Destination) -> bytes:
    """The head as the host itself expects it, for this host and for once only.

    Headers that speak of another host or to the proxy stay behind; the connection ends with the
    answer.
    """
    parts = urlsplit(request.target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = [f"{name}: {value}" for name, value in request.headers if not _is_ours(name.lower())]
    host = destination.host if destination.port == 80 else str(destination)
    lines = [f"{request.method} {path} {request.version}", f"Host: {host}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def _is_ours(name: str) -> bool:
    return name in ("host", "connection", "keep-alive", "upgrade") or name.startswith("proxy-")


async def carry_body(
    request: ProxyRequest, source: asyncio.StreamReader, target: asyncio.StreamWriter
) -> None:
    """Pass on the declared body and nothing behind it: what follows may be for another host.

    Returns when the program has closed its side; then the target's is closed too.
    """
    try:
        if request.length is None:
            await _carry_chunks(source, target)
        else:
            await _carry(request.length, source, target)
        while await source.read(_CHUNK_BYTES):
            pass
        if target.can_write_eof():
            target.write_eof()
    except (OSError, MalformedRequest, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        target.transport.abort()


async def _carry_chunks(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while True:
        size = _CHUNK_SIZE.fullmatch(await source.readuntil(b"\r\n"))
        if size is None:
            raise MalformedRequest
        length = int(size[1], 16)
        target.write(b"%x\r\n" % length)
        if length == 0:
            # What trails behind the last chunk are headers again, and nobody needs them.
            target.write(b"\r\n")
            return
        await _carry(length, source, target)
        if await source.readexactly(2) != b"\r\n":
            raise MalformedRequest
        target.write(b"\r\n")


async def _carry(length: int, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while length:
        piece = await source.read(min(length, _CHUNK_BYTES))
        if not piece:
            raise MalformedRequest
        length -= len(piece)
        target.write(piece)
        await target.drain()


HEAD_BYTES = 32_768
HEAD_SECONDS = 15.0
DIAL_SECONDS = 20.0
MAX_CONNECTIONS = 256
_MAX_REMEMBERED = 20
_PAUSE_SECONDS = 0.1

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]


class _ProxyRefusal(Exception):
    """The proxy answers this itself; nothing goes out."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


def serve_network(environ: Mapping[str, str]) -> Serve:
    """Serves trees on a machine with these variables, which may name a proxy of its own."""
    upstream = UpstreamProxy.of(environ)

    def serve(
        confinement: Confinement,
        proxy: socket.socket | None,
        forwarded: dict[int, socket.socket],
    ) -> TreeNetwork:
        network = TreeNetwork(confinement.hosts, upstream)
        if proxy is not None:
            network.serve_proxy(proxy)
        network.forward(forwarded)
        return network

    return serve


class TreeNetwork:
    """Serves the listening sockets of one confined tree until it is closed."""

    def __init__(self, hosts: Sequence[str], upstream: UpstreamProxy | None = None) -> None:
        self._hosts = tuple(hosts)
        self._upstream = upstream or UpstreamProxy()
        self._listening: set[asyncio.Task[None]] = set()
        self._talks: set[asyncio.Task[None]] = set()
        self._refused: dict[str, None] = {}

    @property
    def refused_hosts(self) -> tuple[str, ...]:
        """Hosts that were wanted and are not listed, the first few."""
        return tuple(self._refused)

    def serve_proxy(self, listener: socket.socket) -> None:
        """Let programs that ask a proxy reach the listed hosts."""
        self._keep(self._accept(listener, self._as_proxy), self._listening)

    def forward(self, listeners: Mapping[int, socket.socket]) -> None:
        """Let each of these ports inside lead to the same port of this machine's loopback."""
        for port, listener in listeners.items():
            self._keep(self._accept(listener, self._to_port(port)), self._listening)

    def close(self) -> None:
        """Stop listening and drop every connection. May be called more than once."""
        for task in (*self._listening, *self._talks):
            task.cancel()

    async def closed(self) -> None:
        """Wait until nothing of it is open any more."""
        self.close()
        await asyncio.gather(*self._listening, *self._talks, return_exceptions=True)

    def _keep(self, work: Coroutine[None, None, None], tasks: set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _accept(self, listener: socket.socket, talk: Talk) -> None:
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    met, _ = await loop.sock_accept(listener)
                except OSError:  # Out of descriptors, for now; or a connection that is gone again.
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                if len(self._talks) >= MAX_CONNECTIONS:
                    met.close()
                else:
                    self._keep(_until_closed(talk, met), self._talks)

    def _to_port(self, port: int) -> Talk:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # Nobody listening outside is told to the program as what it is: a connection that ends.
            with suppress(OSError):
                outside = await asyncio.open_connection("127.0.0.1", port)
                await _join((reader, writer), outside)

        return talk

    async def _as_proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                request = await _read_request(reader)
            destination = self._judged(request)
            async with asyncio.timeout(DIAL_SECONDS):
                outside = await self._upstream.dial(destination)
        except _ProxyRefusal as refused:
            await _answer(writer, refused.status, str(refused))
        except NotReached as error:
            await _answer(writer, "502 Bad Gateway", str(error))
        except TimeoutError:
            await _answer(writer, "504 Gateway Timeout", "the host did not answer in time")
        else:
            if request.method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                asking = _pump(reader, outside[1])
            else:
                outside[1].write(as_origin_form(request, destination))
                asking = carry_body(request, reader, outside[1])
            await _both(asking, writer, outside)

    def _judged(self, request: ProxyRequest) -> Destination:
        destination = _destination_of(request)
        if not is_listed(destination, self._hosts):
            if len(self._refused) < _MAX_REMEMBERED:
                self._refused[str(destination)] = None
            raise _ProxyRefusal(
                "403 Forbidden",
                f"Permission Denied: {destination} is not one of the allowed hosts "
                f"({', '.join(self._hosts) or 'none'}); a person can add it to `sandbox.hosts` with "
                "`network: listed`, and run `podium trust` if that is in a project's podium.yaml",
            )
        return destination


def _destination_of(request: ProxyRequest) -> Destination:
    if request.method == "CONNECT":
        destination = read_destination(request.target)
    else:
        parts = urlsplit(request.target)
        if parts.scheme != "http":
            raise _ProxyRefusal(
                "400 Bad Request",
                "this is a proxy; use CONNECT or a full http:// URL",
            )
        destination = read_destination(parts.netloc.rpartition("@")[2], default_port=80)
    if destination is None:
        raise _ProxyRefusal("400 Bad Request", "the address has no host or port")
    return destination


async def _read_request(reader: asyncio.StreamReader) -> ProxyRequest:
    try:
        return await read_request(reader)
    except MalformedRequest:
        raise _ProxyRefusal("400 Bad Request", "this is not a valid request to a proxy") from None


async def _answer(writer: asyncio.StreamWriter, status: str, message: str) -> None:
    body = f"podium: {message}\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    with suppress(OSError):
        await writer.drain()


async def _join(inside: Streams, outside: Streams) -> None:
    await _both(_pump(inside[0], outside[1]), inside[1], outside)


async def _both(
    asking: Coroutine[None, None, None], inside: asyncio.StreamWriter, outside: Streams
) -> None:
    """Carry what is asked out and what is answered in until both have ended, or one has broken."""
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(asking)
            both.create_task(_pump(outside[0], inside))
    finally:
        outside[1].close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(_CHUNK_BYTES):
            target.write(chunk)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
    except OSError:
        target.transport.abort()


async def _until_closed(talk: Talk, met: socket.socket) -> None:
    reader, writer = await _streams(met)
    try:
        await talk(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _streams(met: socket.socket) -> Streams:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=HEAD_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, met)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
