"""Guards before every handler: host name, origin, authentication, size and rate.

Nothing is open unless it is listed here. Handlers add the role they require.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.core.errors import PodiumError
from podium.web.access.authentication import PERSON_KEY, comes_by_cookie, person_of, recognise
from podium.web.access.host_names import METHODS, Names, asks_loopback
from podium.web.access.limits import (
    NotAllowed,
    NotLetIn,
    Requests,
    Streams,
    TurnedAway,
    address_of,
    apply_proxy_headers,
    check_head,
    has_body,
    read_body,
)
from podium.web.access.tokens import Person
from podium.web.context import WebContext
from podium.web.problems import answer_to
from podium.web.settings import ConsoleSettings

OPEN_PATHS = frozenset({"/login", "/healthz", "/favicon.ico"})
OPEN_BELOW = ("/static/", "/l/", "/chat/", "/hooks/")
"""Paths open to strangers. Links, chats and webhooks carry proofs of their own, which their handlers verify."""
CARD_ACTS = {
    "/cards/": ("", "/part", "/live", "/approve", "/reject"),
    "/api/v1/approvals/": ("", "/approve", "/reject"),
}
"""Requests a link's session may make, for its own card only."""

_log = logging.getLogger("podium.web")


class Guards:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, context: WebContext) -> None:
        settings = context.settings
        self._app = app
        self._context = context
        self._names = Names(settings)
        self._requests = Requests(settings.requests_per_minute)
        self._streams = Streams(settings.streams_per_person, settings.most_streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._speak(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = GuardedResponse(scope, send, self._streams, self._context.settings)
        headers = Headers(scope=scope)
        try:
            self._let_in(scope, headers)
            if has_body(headers):
                receive = await self._body(scope, receive, headers)
        except PodiumError as error:
            await self._refuse(scope, receive, answering, error)
            return
        # A head is an answer without its body.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            await self._app(asked, receive, answering.send)
        except Exception as error:
            await self._broke_off(scope, receive, answering, error)
        finally:
            answering.end()

    async def _broke_off(
        self, scope: Scope, receive: Receive, answering: GuardedResponse, error: Exception
    ) -> None:
        if answering.refusal is not None:
            await self._refuse(scope, receive, answering, answering.refusal)
        elif answering.has_begun and not answering.is_over:
            # The server logs it, and breaks the connection off.
            raise error
        elif not answering.is_over:
            _log.error("%s %r failed", scope["method"], scope["path"], exc_info=error)
            refusal = TurnedAway(500, "internal error; see the console's log")
            await self._refuse(scope, receive, answering, refusal)

    async def _refuse(
        self, scope: Scope, receive: Receive, answering: GuardedResponse, error: PodiumError
    ) -> None:
        answer = answer_to(Request(scope), error)
        if isinstance(error, TurnedAway):
            # What is left of the request is not waited for.
            MutableHeaders(raw=answer.raw_headers)["connection"] = "close"
        answering.refusal = None
        try:
            await answer(scope, receive, answering.send)
        except ResponseComplete:
            return

    async def _speak(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._let_in(scope, Headers(scope=scope))
            key = limit_key(scope)
            self._streams.begin(key)
        except PodiumError as error:
            await receive()
            await _deny(scope, send, error)
            return
        speaking = GuardedSocket(scope, receive, send)
        try:
            await self._app(scope, speaking.hear, speaking.say)
        finally:
            self._streams.end(key)

    def _let_in(self, scope: Scope, headers: Headers) -> None:
        """Raise when the request must not be answered."""
        scope[PERSON_KEY] = None
        check_head(scope)
        if self._context.settings.behind_proxy:
            apply_proxy_headers(scope, headers)
        if scope["type"] == "http" and scope["method"] not in METHODS:
            raise TurnedAway(405, "method not allowed")
        self._names.check_host(scope, headers)
        connection = HTTPConnection(scope)
        self._names.check_origin(scope, headers, by_cookie=comes_by_cookie(connection))
        person = scope[PERSON_KEY] = self._recognised(connection)
        if scope["path"].startswith("/static/"):
            return
        self._requests.count(limit_key(scope))
        if person is None and not _is_open(scope["path"]):
            raise NotLetIn(_who(headers))
        if person is not None and person.card and not _is_of_card(scope["path"], person.card):
            raise NotAllowed(
                "this link is for one card only; sign in with a token for anything else"
            )

    def _recognised(self, connection: HTTPConnection) -> Person | None:
        person = recognise(connection)
        by_token = "authorization" in connection.headers
        if person is None and by_token and not _is_open(connection.scope["path"]):
            self._context.attempts.failed(address_of(connection.scope))
        return person

    async def _body(self, scope: Scope, receive: Receive, headers: Headers) -> Receive:
        settings = self._context.settings
        is_person = scope[PERSON_KEY] is not None
        # Events of a forge hold whole descriptions and comments.
        is_event = scope["path"].startswith("/hooks/")
        most = settings.most_body_bytes if is_person or is_event else settings.most_stranger_bytes
        return await read_body(receive, headers, most_bytes=most, seconds=settings.body_seconds)


def _who(headers: Headers) -> str:
    if "authorization" in headers:
        return "this token is unknown, expired or revoked; create one with `podium serve tokens add NAME`"
    return "authentication required; use a token from `podium serve tokens add NAME`"


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_BELOW)


def _is_of_card(path: str, card: str) -> bool:
    if _is_open(path) or path == "/logout":
        return True
    return any(path == prefix + card + act for prefix, acts in CARD_ACTS.items() for act in acts)


async def _deny(scope: Scope, send: Send, error: PodiumError) -> None:
    """Refuse a websocket handshake with an HTTP response where the server supports it."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": GONE})
        return
    answer = answer_to(HTTPConnection(scope), error)
    start = {"status": answer.status_code, "headers": answer.raw_headers}
    await send({"type": "websocket.http.response.start", **start})
    await send({"type": "websocket.http.response.body", "body": answer.body})


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


class ResponseComplete(Exception):
    """The response is complete; the handler may stop."""


class GuardedResponse:
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
        """Send a message. Raises `ResponseComplete` when the handler can stop."""
        if self.is_over:
            raise ResponseComplete
        if message["type"] == "http.response.start":
            await self._begin(message)
            return
        if self._counted and not is_still_valid(self._scope):
            message = {"type": "http.response.body", "body": b"", "more_body": False}
            self.is_over = True
        await self._send(message)
        if self.is_over:
            raise ResponseComplete

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
            raise ResponseComplete

    def _count(self) -> None:
        key = limit_key(self._scope)
        try:
            self._streams.begin(key)
        except TurnedAway as refusal:
            self.refusal = refusal
            raise ResponseComplete from None
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


class GuardedSocket:
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
