"""Responses and websockets on their way out: security headers, stream count, end of the token."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from podium.web.access.authentication import person_of, recognise
from podium.web.access.host_names import asks_loopback
from podium.web.access.limits import Streams, TurnedAway, address_of
from podium.web.settings import ConsoleSettings

_PARTS = (
    "default-src 'none'; script-src 'self'; style-src 'self'{styles}; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
POLICY = _PARTS.format(styles="").encode()
TERMINAL_POLICY = _PARTS.format(styles=" 'unsafe-inline'").encode()
"""Policy of the page with terminals: xterm.js positions its cells with style elements it writes itself."""
TERMINAL_PAGES = "/duet"
STATIC = "/static/"
VENDORED = "/static/vendor/"
_YEAR_SECONDS = 31_536_000

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    # With no-referrer browsers would tell no origin of a form either.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
_TRANSPORT = (b"strict-transport-security", f"max-age={_YEAR_SECONDS}".encode())

Pairs = list[tuple[bytes, bytes]]


def response_headers(
    path: str, headers: Iterable[tuple[bytes, bytes]], *, lasting_tls: bool
) -> Pairs:
    """Merge the handler's headers with the security headers. `lasting_tls` adds HSTS."""
    ours = [(b"content-security-policy", _policy(path)), *_ALWAYS]
    ours.append((b"cache-control", _keeping(path)))
    if lasting_tls:
        ours.append(_TRANSPORT)
    own = [(name.lower(), value) for name, value in headers]
    names = {name for name, _ in own}
    return [*own, *(pair for pair in ours if pair[0] not in names)]


def _policy(path: str) -> bytes:
    on_terminals = path == TERMINAL_PAGES or path.startswith(f"{TERMINAL_PAGES}/")
    return TERMINAL_POLICY if on_terminals else POLICY


def _keeping(path: str) -> bytes:
    if path.startswith(VENDORED):
        # Its version stands in the path.
        return f"max-age={_YEAR_SECONDS}, immutable".encode()
    return b"no-cache" if path.startswith(STATIC) else b"no-store"


STREAM = "text/event-stream"


class AnswerOver(Exception):
    """The response is complete; the handler may stop."""


class Answering:
    """One response on its way out. Its creator calls `end`."""

    def __init__(
        self, scope: Scope, send: Send, streams: Streams, settings: ConsoleSettings
    ) -> None:
        self._scope = scope
        self._send = send
        self._streams = streams
        self._is_lasting = settings.is_secure and not asks_loopback(Headers(scope=scope))
        self._counted = ""
        self.has_begun = False
        self.is_over = False
        self.refusal: TurnedAway | None = None
        """The limit that kept the handler's response from starting."""

    async def send(self, message: Message) -> None:
        """Send a message. Raises `AnswerOver` when the handler can stop."""
        if self.is_over:
            raise AnswerOver
        if message["type"] == "http.response.start":
            await self._begin(message)
            return
        if self._counted and not is_still_valid(self._scope):
            message = {"type": "http.response.body", "body": b"", "more_body": False}
            self.is_over = True
        await self._send(message)
        if self.is_over:
            raise AnswerOver

    async def _begin(self, message: Message) -> None:
        if Headers(raw=message["headers"]).get("content-type", "").startswith(STREAM):
            self._count()
        headers = response_headers(
            self._scope["path"], message["headers"], lasting_tls=self._is_lasting
        )
        self.has_begun = True
        await self._send({**message, "headers": headers})
        if self._scope["method"] == "HEAD":
            self.is_over = True
            await self._send({"type": "http.response.body", "body": b""})
            raise AnswerOver

    def _count(self) -> None:
        key = limit_key(self._scope)
        try:
            self._streams.begin(key)
        except TurnedAway as refusal:
            self.refusal = refusal
            raise AnswerOver from None
        self._counted = key

    def end(self) -> None:
        """Release the stream this response counted as."""
        if self._counted:
            self._streams.end(self._counted)
            self._counted = ""


def limit_key(scope: Scope) -> str:
    """Return the key that limits count by: a token, a link's session, or a stranger's address."""
    person = person_of(HTTPConnection(scope))
    if person is None:
        return f"from {address_of(scope)}"
    return person.token_id or f"{person.name} for {person.card}"


def is_still_valid(scope: Scope) -> bool:
    """True while the person would still be let in; their token may have been revoked or have expired."""
    person = person_of(HTTPConnection(scope))
    return person is None or recognise(HTTPConnection(scope)) is not None


GONE = 4401
"""Websocket close code: the token is no longer valid."""


class Speaking:
    """Websocket as its handler sees it. Nothing is received or sent once its token has expired."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._is_over = False

    async def hear(self) -> Message:
        message = await self._receive()
        if message["type"] != "websocket.receive" or await self._goes_on():
            return message
        return {"type": "websocket.disconnect", "code": GONE}

    async def say(self, message: Message) -> None:
        if await self._goes_on():
            await self._send(message)

    async def _goes_on(self) -> bool:
        if not self._is_over and not is_still_valid(self._scope):
            self._is_over = True
            await self._send({"type": "websocket.close", "code": GONE})
        return not self._is_over
