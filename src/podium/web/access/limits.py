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
    """Nobody known asks."""


class NotAllowed(PodiumError):
    """Somebody known asks for what their role does not cover."""


class TurnedAway(PodiumError):
    """Whoever asks, it is not answered: too much, too often, too slowly, or from a place that is not ours."""

    def __init__(self, code: int, message: str, *, retry_after_seconds: int = 0) -> None:
        super().__init__(message)
        self.code = code
        """The HTTP status."""
        self.retry_after_seconds = retry_after_seconds
        """When it is worth asking again; 0 where time changes nothing."""


MAX_HEAD_BYTES = 32_768
MAX_PATH_BYTES = 8_192


def check_head(scope: Scope) -> None:
    """Raise `TurnedAway` for more than anybody needs."""
    asked = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    if asked > MAX_PATH_BYTES:
        raise TurnedAway(414, f"a path has at most {MAX_PATH_BYTES:,} bytes here")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD_BYTES:
        raise TurnedAway(431, f"the headers have at most {MAX_HEAD_BYTES:,} bytes here")


def has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def whole_body(
    receive: Receive, headers: Headers, *, most_bytes: int, seconds: float
) -> Receive:
    """What gives the handlers the body, once all of it is here.

    Raises `TurnedAway` for one that is too large, whatever its length was said to be, or too slow.
    """
    said = headers.get("content-length", "")
    if said.isdigit() and int(said) > most_bytes:
        raise _too_large(most_bytes)
    try:
        async with asyncio.timeout(seconds):
            message = await _read(receive, most_bytes)
    except TimeoutError:
        raise TurnedAway(408, f"the request did not arrive within {seconds:.0f} s") from None
    given = [message]

    async def replay() -> Message:
        return given.pop() if given else await receive()

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
    return TurnedAway(413, f"a request has at most {most_bytes:,} bytes here")


MAX_ADDRESS = 64


def put_right(scope: Scope, headers: Headers) -> None:
    """Have the scope tell who asks the proxy, and that they do so by TLS.

    The last address is the one that the proxy itself saw; those before it anybody can write.
    """
    if not is_own_machine(scope):
        return
    told = ",".join(headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    if told:
        scope["client"] = (told[:MAX_ADDRESS], 0)
    if headers.get("x-forwarded-proto", "").strip().lower() == "https":
        scope["scheme"] = "wss" if scope["type"] == "websocket" else "https"


def is_own_machine(scope: Scope) -> bool:
    """Whether a process of this machine asks: over loopback, or a socket."""
    client = scope.get("client")
    if not client or not client[0]:
        return True
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False


def address_of(scope: Scope) -> str:
    """Who asks, as far as limits are concerned."""
    client = scope.get("client")
    return str(client[0]) if client and client[0] else "socket"


MAX_KEPT = 10_000
"""How many are remembered; who has not asked for longest is forgotten first."""
FAILURES_PER_MINUTE = 10
"""From one address."""
ALL_FAILURES_PER_MINUTE = 100
"""From all addresses together; then those who failed before wait."""

Ticks = Callable[[], float]


class Rates:
    """So many a minute for each, which may come at once; they grow again evenly."""

    def __init__(self, per_minute: int, ticks: Ticks = time.monotonic) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._ticks = ticks
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, key: str) -> None:
        """Take one."""
        self._left[key] = (self._now(key) - 1, self._ticks())
        self._left.move_to_end(key)
        while len(self._left) > MAX_KEPT:
            self._left.popitem(last=False)

    def wait_seconds(self, key: str) -> int:
        """How long until there is one again; 0 when there is."""
        left = self._now(key)
        return 0 if left >= 1 else max(1, math.ceil((1 - left) / self._per_second))

    def knows(self, key: str) -> bool:
        """Whether any of theirs is still spent."""
        return self._now(key) < self._most

    def _now(self, key: str) -> float:
        left, at = self._left.get(key, (self._most, 0.0))
        return min(self._most, left + (self._ticks() - at) * self._per_second)


class Requests:
    """Every request counts; a stream counts once."""

    def __init__(self, per_minute: int, ticks: Ticks = time.monotonic) -> None:
        self._rates = Rates(per_minute, ticks)

    def count(self, key: str) -> None:
        """Raise `TurnedAway` for one too many."""
        if wait := self._rates.wait_seconds(key):
            raise TurnedAway(
                429, f"too many requests; ask again in {wait} s", retry_after_seconds=wait
            )
        self._rates.spend(key)


class Attempts:
    """Tokens and links that were none. What is right is let in all the same: others share its address."""

    def __init__(self, ticks: Ticks = time.monotonic) -> None:
        self._each = Rates(FAILURES_PER_MINUTE, ticks)
        self._all = Rates(ALL_FAILURES_PER_MINUTE, ticks)

    def failed(self, address: str) -> None:
        """Count one. Raises `TurnedAway` for one too many; whoever never failed before is told so as usual."""
        wait = self._each.wait_seconds(address)
        if not wait and self._each.knows(address):
            wait = self._all.wait_seconds("")
        if wait:
            raise TurnedAway(
                429, f"too many wrong tokens; try again in {wait} s", retry_after_seconds=wait
            )
        self._each.spend(address)
        self._all.spend("")


SOON_SECONDS = 10


class Streams:
    """Counts what is open, by person and in all. Plain requests are answered however many there are."""

    def __init__(self, each: int, most: int) -> None:
        self._each = each
        self._most = most
        self._open: Counter[str] = Counter()

    def begin(self, key: str) -> None:
        """Raise `TurnedAway` for one too many."""
        if self._open[key] >= self._each:
            words = f"you have {self._each} streams open; close a page of the console"
            raise TurnedAway(429, words, retry_after_seconds=SOON_SECONDS)
        if self._open.total() >= self._most:
            words = "too many streams are open; try again soon"
            raise TurnedAway(503, words, retry_after_seconds=SOON_SECONDS)
        self._open[key] += 1

    def end(self, key: str) -> None:
        self._open[key] -= 1
        if not self._open[key]:
            del self._open[key]
