"""Minimal HTTP server for pages that machines fetch: GET only, bounded in size, time and number."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from podium.core.errors import BadInput, UserMustAct

HEAD_BYTES = 8192
REQUEST_SECONDS = 5.0
ANSWER_SECONDS = 10.0
MAX_CONNECTIONS = 16

_REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class MetricsPage(NamedTuple):
    """Response page."""

    text: str
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


Pages = Mapping[str, Callable[[], Awaitable[MetricsPage]]]
"""Path → function that renders the page."""


class Address(NamedTuple):
    """Address to listen on."""

    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"


def read_address(text: str) -> Address:
    """Parse `HOST:PORT`, or a port alone, which listens on the loopback address."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) <= 65535) or " " in host:
        raise BadInput(
            f"{text!r} is not a valid address; use HOST:PORT such as 127.0.0.1:9464, "
            "or a port alone"
        )
    return Address(host, int(port))


@asynccontextmanager
async def served(address: Address, pages: Pages) -> AsyncIterator[Address]:
    """Serve the pages while open, and give the address with its real port.

    Raises `UserMustAct` when nothing can listen there.
    """
    connections = _Connections(pages, names_allowed=not address.is_loopback)
    try:
        server = await asyncio.start_server(
            connections.connected, address.host, address.port, limit=HEAD_BYTES
        )
    except (OSError, UnicodeError) as error:
        raise UserMustAct(
            f"cannot listen on {address.host}:{address.port}: "
            f"{getattr(error, 'strerror', None) or error}; choose another address, or stop the program that uses it"
        ) from error
    try:
        yield Address(address.host, _port(server.sockets[0]))
    finally:
        server.close()
        await connections.close()
        await server.wait_closed()


def _port(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


class _Connections:
    """Answers one request on each connection."""

    def __init__(self, pages: Pages, *, names_allowed: bool) -> None:
        self._pages = pages
        self._names_allowed = names_allowed
        self._busy: set[asyncio.Task[None]] = set()

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._busy) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def close(self) -> None:
        """Cancel every connection."""
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS + 2 * ANSWER_SECONDS):
                page = await self._answer(reader)
                writer.write(_bytes_of(page))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (ConnectionError, TimeoutError):
            pass  # whoever asked went away, or reads too slowly
        finally:
            if not writer.is_closing():
                writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> MetricsPage:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            return MetricsPage("the request timed out\n", status=408)
        except asyncio.LimitOverrunError:
            return MetricsPage("the request is too long\n", status=400)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("closed before a request was sent") from error
        lines = head.decode("latin-1").split("\r\n")
        match lines[0].split(" "):
            case [method, target, version] if version.startswith("HTTP/1."):
                return await self._page(method, target.partition("?")[0], lines[1:])
        return MetricsPage("not an HTTP request\n", status=400)

    async def _page(self, method: str, path: str, headers: list[str]) -> MetricsPage:
        if not self._names_allowed and not _is_local_name(_host_of(headers)):
            # A web page whose name was made to lead here must not read what is for this machine.
            return MetricsPage("use an IP address or localhost\n", status=403)
        if path not in self._pages:
            return MetricsPage(f"not found; pages: {', '.join(self._pages)}\n", status=404)
        if method != "GET":
            return MetricsPage("only GET is allowed\n", status=405)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._pages[path]()
        except TimeoutError:
            return MetricsPage("the page timed out\n", status=503)
        except Exception as error:
            return MetricsPage(f"the page failed: {type(error).__name__}\n", status=500)


def _host_of(headers: list[str]) -> str:
    """Return the requested host; empty when the header is missing."""
    for line in headers:
        name, _, value = line.partition(":")
        if name.lower() == "host":
            return value.strip()
    return ""


def _is_local_name(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name in ("", "localhost"):
        return True
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False


def _bytes_of(page: MetricsPage) -> bytes:
    body = page.text.encode(errors="replace")
    head = [
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}",
        f"Content-Type: {page.content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *(["Allow: GET"] if page.status == 405 else []),
    ]
    return "\r\n".join([*head, "", ""]).encode() + body
