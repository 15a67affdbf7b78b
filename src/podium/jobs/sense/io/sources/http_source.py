"""Source that reads a URL."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from podium.core.model import Json
from podium.jobs.sense.io.sources.base import AskedSource, understand_output
from podium.jobs.sense.io.sources.file_selection import NotSensed, SourceDeps, without_login
from podium.jobs.sense.models import Condition

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse


_MAX_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "Accept": "application/json, text/*;q=0.8, */*;q=0.1",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "podium-sense",
}


class HttpSource(AskedSource):
    """Gets an address over HTTP and gives status and body, as JSON where it is JSON.

    It is asked directly, whatever proxies the environment names, and redirects are followed on the same host alone.
    """

    def __init__(
        self, deps: SourceDeps, name: str, url: str, *, timeout_seconds: float = 10.0
    ) -> None:
        super().__init__(deps, name, without_login(url))
        self._url = url
        self._timeout_seconds = timeout_seconds

    async def _ask(self) -> tuple[Condition, str, Json]:
        address = _checked(self._url)
        for _ in range(_MAX_REDIRECTS + 1):
            status, target, body = await self._answer(address)
            if status not in _REDIRECTS:
                return "ok", "", {"status": status, "body": understand_output(body)}
            address = _redirected(address, target)
        raise NotSensed("unreadable", f"it redirects more than {_MAX_REDIRECTS} times")

    async def _answer(self, address: SplitResult) -> tuple[int, str, bytes]:
        exchange = _Exchange(address, self._timeout_seconds, self._deps.file_bytes)
        try:
            # An answer that comes drop by drop never meets the time limit of a single read.
            async with asyncio.timeout(self._timeout_seconds):
                return await asyncio.to_thread(exchange.run)
        except TimeoutError:
            limit = f"{self._timeout_seconds:g} seconds"
            raise NotSensed("unreadable", f"no answer within {limit}") from None
        except (OSError, ValueError) as error:
            raise NotSensed("unreadable", f"no answer: {error}") from None
        finally:
            exchange.end()


class _Exchange:
    """One question and its answer. Runs in a thread; `end` lets it return from wherever it waits."""

    def __init__(self, address: SplitResult, seconds: float, limit_bytes: int) -> None:
        self._address = address
        self._seconds = seconds
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._wire: socket.socket | None = None
        self._over = False

    def run(self) -> tuple[int, str, bytes]:
        """Status, where it redirects to, body."""
        from http.client import HTTPException

        connection = self._connected()
        try:
            path = self._address.path or "/"
            query = f"?{self._address.query}" if self._address.query else ""
            connection.request("GET", path + query, headers=_HEADERS)
            with connection.getresponse() as response:
                return response.status, response.getheader("Location", ""), self._body(response)
        except HTTPException as error:
            raise ValueError(f"it does not speak HTTP: {error!r}") from None
        finally:
            connection.close()
            self.end()

    def end(self) -> None:
        with self._lock:
            self._over = True
            if self._wire is not None:
                wire, self._wire = self._wire, None
                with suppress(OSError):  # the other side was quicker
                    wire.shutdown(socket.SHUT_RDWR)
                wire.close()

    def _connected(self) -> HTTPConnection:
        # A fifth of a second to import: only whoever asks over HTTP waits for it.
        from http.client import HTTPConnection

        host, port = str(self._address.hostname), self._port()
        wire = socket.create_connection((host, port), self._seconds)
        try:
            self._keep(wire)
            connection = HTTPConnection(host, port, timeout=self._seconds)
            connection.sock = self._secured(wire, host)
        except BaseException:
            wire.close()
            raise
        return connection

    def _port(self) -> int:
        return self._address.port or (443 if self._address.scheme == "https" else 80)

    def _keep(self, wire: socket.socket) -> None:
        """A second handle of the same connection: the first changes hands when it is encrypted."""
        with self._lock:
            if self._over:
                raise TimeoutError("too late")
            self._wire = wire.dup()

    def _secured(self, wire: socket.socket, host: str) -> socket.socket:
        if self._address.scheme != "https":
            return wire
        return ssl.create_default_context().wrap_socket(wire, server_hostname=host)

    def _body(self, response: HTTPResponse) -> bytes:
        if response.status in _REDIRECTS:
            return b""
        body = response.read(self._limit_bytes + 1)
        if len(body) > self._limit_bytes:
            raise NotSensed("too_large", f"it answers with more than {self._limit_bytes} bytes")
        if response.length:
            raise NotSensed("malformed", "it broke off in the middle of its answer")
        return body


def _checked(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        port = address.port
    except ValueError as error:
        raise NotSensed("unreadable", f"it is no address: {error}") from None
    if address.scheme not in ("http", "https") or not address.hostname or port == 0:
        raise NotSensed("unreadable", "only http:// and https:// addresses are asked")
    if address.username is not None or address.password is not None:
        raise NotSensed("unreadable", "it holds a login; use an address without one")
    return address


def _redirected(address: SplitResult, target: str) -> SplitResult:
    following = _checked(urljoin(address.geturl(), target))
    same = (following.hostname, following.port) == (address.hostname, address.port)
    if not same or (address.scheme == "https" and following.scheme == "http"):
        where = without_login(following.geturl())
        raise NotSensed("unreadable", f"it redirects to {where!r}, which is not followed")
    return following
