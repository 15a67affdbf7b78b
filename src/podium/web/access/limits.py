"""Limits of requests: size and speed of headers and bodies, rate per client, open streams, trusted proxy."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from podium.core.errors import PodiumError


class NotLetIn(PodiumError):
    """The request carries no valid token or session."""


class NotAllowed(PodiumError):
    """The person's role does not cover this request."""


class TurnedAway(PodiumError):
    """The request is refused whoever sends it: too large, too frequent, too slow, or from another site."""

    def __init__(self, code: int, message: str, *, retry_after_seconds: int = 0) -> None:
        super().__init__(message)
        self.code = code
        """The HTTP status."""
        self.retry_after_seconds = retry_after_seconds
        """Seconds until a retry makes sense; 0 when waiting does not help."""


MAX_HEAD_BYTES = 32_768
MAX_PATH_BYTES = 8_192


def check_head(scope: Scope) -> None:
    """Raise `TurnedAway` when path or headers are too large."""
    asked = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    if asked > MAX_PATH_BYTES:
        raise TurnedAway(414, f"the path is longer than {MAX_PATH_BYTES:,} bytes")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD_BYTES:
        raise TurnedAway(431, f"the headers are larger than {MAX_HEAD_BYTES:,} bytes")


def has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def read_body(
    receive: Receive, headers: Headers, *, most_bytes: int, seconds: float
) -> Receive:
    """Read the whole body, and return a `receive` that replays it to the handlers.

    Raises `TurnedAway` when it is too large, whatever `Content-Length` says, or too slow.
    """
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > most_bytes:
        raise _too_large(most_bytes)
    try:
        async with asyncio.timeout(seconds):
            message = await _read(receive, most_bytes)
    except TimeoutError:
        raise TurnedAway(408, f"the request body did not arrive within {seconds:.0f} s") from None
    messages = [message]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


async def _read(receive: Receive, most_bytes: int) -> Message:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        body += message.get("body", b"")
        if len(body) > most_bytes:
            raise _too_large(most_bytes)
        if not message.get("more_body", False):
            return {"type": "http.request", "body": bytes(body), "more_body": False}


def _too_large(most_bytes: int) -> TurnedAway:
    return TurnedAway(413, f"the request body is larger than {most_bytes:,} bytes")


MAX_ADDRESS = 64


def apply_proxy_headers(scope: Scope, headers: Headers) -> None:
    """Set client address and scheme from the proxy's headers.

    The last address is the one that the proxy itself saw; those before it anybody can write.
    """
    if not is_local(scope):
        return
    address = ",".join(headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    if address:
        scope["client"] = (address[:MAX_ADDRESS], 0)
    if headers.get("x-forwarded-proto", "").strip().lower() == "https":
        scope["scheme"] = "wss" if scope["type"] == "websocket" else "https"


def is_local(scope: Scope) -> bool:
    """True when the client is on this machine: over loopback or a Unix socket."""
    client = scope.get("client")
    if not client or not client[0]:
        return True
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False


def address_of(scope: Scope) -> str:
    """Return the client address that limits are counted by."""
    client = scope.get("client")
    return str(client[0]) if client and client[0] else "socket"


MAX_CLIENTS = 10_000
"""Clients remembered at once; the least recent is forgotten first."""
FAILURES_PER_MINUTE = 10
"""Failed attempts per address."""
ALL_FAILURES_PER_MINUTE = 100
"""Failed attempts from all addresses together; beyond it, addresses that failed before must wait."""

Ticks = Callable[[], float]


class Rates:
    """Token bucket per key: `per_minute` requests, refilled evenly."""

    def __init__(self, per_minute: int, ticks: Ticks = time.monotonic) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._ticks = ticks
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, key: str) -> None:
        """Take one."""
        self._left[key] = (self._now(key) - 1, self._ticks())
        self._left.move_to_end(key)
        while len(self._left) > MAX_CLIENTS:
            self._left.popitem(last=False)

    def wait_seconds(self, key: str) -> int:
        """Seconds until the key has a token again; 0 when it has one now."""
        left = self._now(key)
        return 0 if left >= 1 else max(1, math.ceil((1 - left) / self._per_second))

    def knows(self, key: str) -> bool:
        """True while the key's bucket is not full."""
        return self._now(key) < self._most

    def _now(self, key: str) -> float:
        left, at = self._left.get(key, (self._most, 0.0))
        return min(self._most, left + (self._ticks() - at) * self._per_second)


class Requests:
    """Rate limit of requests; a stream counts once."""

    def __init__(self, per_minute: int, ticks: Ticks = time.monotonic) -> None:
        self._rates = Rates(per_minute, ticks)

    def count(self, key: str) -> None:
        """Raise `TurnedAway` beyond the limit."""
        if wait := self._rates.wait_seconds(key):
            raise TurnedAway(429, f"too many requests; retry in {wait} s", retry_after_seconds=wait)
        self._rates.spend(key)


class Attempts:
    """Rate limit of failed tokens and links. A valid one is still accepted, since others may share its address."""

    def __init__(self, ticks: Ticks = time.monotonic) -> None:
        self._by_address = Rates(FAILURES_PER_MINUTE, ticks)
        self._all = Rates(ALL_FAILURES_PER_MINUTE, ticks)

    def failed(self, address: str) -> None:
        """Count a failure. Raises `TurnedAway` beyond the limit; an address that never failed before gets the usual answer."""
        wait = self._by_address.wait_seconds(address)
        if not wait and self._by_address.knows(address):
            wait = self._all.wait_seconds("")
        if wait:
            raise TurnedAway(
                429, f"too many wrong tokens; try again in {wait} s", retry_after_seconds=wait
            )
        self._by_address.spend(address)
        self._all.spend("")


SOON_SECONDS = 10


class Streams:
    """Limit of open streams, per person and in total. Plain requests are not counted."""

    def __init__(self, per_person: int, most: int) -> None:
        self._per_person = per_person
        self._most = most
        self._open: Counter[str] = Counter()

    def begin(self, key: str) -> None:
        """Raise `TurnedAway` beyond the limit."""
        if self._open[key] >= self._per_person:
            message = f"you have {self._per_person} open streams; close a page of the console"
            raise TurnedAway(429, message, retry_after_seconds=SOON_SECONDS)
        if self._open.total() >= self._most:
            message = "too many open streams; retry in a few seconds"
            raise TurnedAway(503, message, retry_after_seconds=SOON_SECONDS)
        self._open[key] += 1

    def end(self, key: str) -> None:
        self._open[key] -= 1
        if not self._open[key]:
            del self._open[key]
