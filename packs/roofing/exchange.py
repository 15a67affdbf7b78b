"""Conversations with servers outside: bounded in time and size, and cut when nobody waits any more."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from podium.core.errors import ToolBroke

T = TypeVar("T")

PARTING_SECONDS = 5.0
"""How long a cut conversation may take to notice. Only the search for a name is not cut by it."""


class NotReached(ToolBroke):
    """The other side certainly has not been told anything."""


class AnswerLost(ToolBroke):
    """The other side was told, wholly or in part, and its answer did not come."""


class Line:
    """A connection that can be cut from another thread, at the latest when its time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_cut = False
        self._socket: socket.socket | None = None
        self._guard = threading.Lock()
        self._timer = threading.Timer(seconds, self.cut)
        self._timer.daemon = True

    def __enter__(self) -> Line:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._guard:
            self._socket = None

    def hold(self, connected: socket.socket | None) -> None:
        """Name the socket to be cut. Raises `NotReached` when it is too late already."""
        with self._guard:
            self._socket = connected
        self.check()

    def check(self) -> None:
        """Raises `NotReached` once the line is cut: for the moment before something is sent."""
        if self.is_cut:
            raise NotReached("timed out before anything was sent; try again")

    def cut(self) -> None:
        with self._guard:
            self.is_cut = True
            if self._socket is not None:
                # Not the TLS socket's own, which takes the encryption away from under its reader.
                with suppress(OSError):  # it is down already
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


async def converse(work: Callable[[Line], T], seconds: float) -> T:
    """Run `work` in a thread with a line that ends with its time or with the waiting task."""
    line = Line(seconds)

    def held() -> T:
        with line:
            return work(line)

    talking = asyncio.ensure_future(asyncio.to_thread(held))
    try:
        return await asyncio.shield(talking)
    except asyncio.CancelledError:
        line.cut()
        talking.add_done_callback(_received)
        # Nothing may be sent behind the back of a cancelled call.
        await asyncio.wait([talking], timeout=PARTING_SECONDS)
        raise


def _received(talking: asyncio.Future[Any]) -> None:
    """Nobody waits for this error any more; asyncio would complain that it was not looked at."""
    if not talking.cancelled():
        talking.exception()


@dataclass(frozen=True)
class Request:
    """One HTTP request. Header values may hold secrets, so none is ever shown."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = None
    most_bytes: int = 4_000_000


@dataclass(frozen=True)
class Answer:
    """Response, whatever its status."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


def safe_url(setting: str, url: str) -> SplitResult:
    """The parts of an address that may be sent secrets: https, or http on this machine alone.

    Raises `ToolBroke`, which names the setting and never shows what it holds.
    """
    try:
        parts = urlsplit(url.strip())
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise ToolBroke(f"{setting} is not a URL such as https://example.com; correct it")
    if parts.username is not None:
        raise ToolBroke(f"{setting} must not contain a name or password; use the settings for them")
    if parts.scheme == "http" and not is_this_machine(parts.hostname or ""):
        raise ToolBroke(
            f"{setting} must begin with https://; otherwise the key would be sent unencrypted"
        )
    return parts


def is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def exchange(request: Request, line: Line) -> Answer:
    """Send one request and read its answer. No redirect is followed.

    Raises `NotReached` or `AnswerLost`.
    """
    parts = urlsplit(request.url)
    place = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    connection = _connection(parts, line.seconds)
    try:
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            raise NotReached(f"{place} cannot be reached: {reason_of(error)}") from None
        line.hold(connection.sock)
        path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        try:
            connection.request(request.method, path, request.body, dict(request.headers))
            return _read(connection.getresponse(), request.most_bytes)
        except (OSError, http.client.HTTPException) as error:
            why = "it took too long" if line.is_cut else reason_of(error)
            raise AnswerLost(f"{place} did not answer completely: {why}") from None
    finally:
        connection.close()


def _connection(parts: SplitResult, seconds: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=context)
    return http.client.HTTPConnection(host, parts.port, timeout=seconds)


def _read(response: http.client.HTTPResponse, most_bytes: int) -> Answer:
    body = response.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise http.client.HTTPException(f"it is larger than {most_bytes} bytes")
    # A read that asks for a number of bytes does not complain when the connection ends early.
    if response.length:
        raise http.client.IncompleteRead(body, response.length)
    return Answer(response.status, response.headers, body)


def reason_of(error: BaseException) -> str:
    """A short reason without addresses or contents."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    # smtplib tells a socket's time-out as a connection that was closed.
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, http.client.IncompleteRead):
        return "the connection was closed too early"
    return str(error) or type(error).__name__
