"""Guards before every handler: host name, origin, authentication, size and rate.

Nothing is open unless it is listed here. Handlers add the role they require.
"""

from __future__ import annotations

import logging

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from podium.core.errors import PodiumError
from podium.web.access.authentication import PERSON_KEY, comes_by_cookie, recognise
from podium.web.access.host_names import METHODS, Names
from podium.web.access.limits import (
    NotAllowed,
    NotLetIn,
    Requests,
    Streams,
    TurnedAway,
    address_of,
    check_head,
    has_body,
    put_right,
    whole_body,
)
from podium.web.access.responses import GONE, Answering, AnswerOver, Speaking, limit_key
from podium.web.access.tokens import Person
from podium.web.context import WebContext
from podium.web.problems import answer_to

OPEN_PATHS = frozenset({"/login", "/healthz", "/favicon.ico"})
OPEN_BELOW = ("/static/", "/l/", "/chat/")
"""Paths open to strangers. Links and chats carry proofs of their own, which their handlers verify."""
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
        answering = Answering(scope, send, self._streams, self._context.settings)
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
        self, scope: Scope, receive: Receive, answering: Answering, error: Exception
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
        self, scope: Scope, receive: Receive, answering: Answering, error: PodiumError
    ) -> None:
        answer = answer_to(Request(scope), error)
        if isinstance(error, TurnedAway):
            # What is left of the request is not waited for.
            MutableHeaders(raw=answer.raw_headers)["connection"] = "close"
        answering.refusal = None
        try:
            await answer(scope, receive, answering.send)
        except AnswerOver:
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
        speaking = Speaking(scope, receive, send)
        try:
            await self._app(scope, speaking.hear, speaking.say)
        finally:
            self._streams.end(key)

    def _let_in(self, scope: Scope, headers: Headers) -> None:
        """Raise when the request must not be answered."""
        scope[PERSON_KEY] = None
        check_head(scope)
        if self._context.settings.behind_proxy:
            put_right(scope, headers)
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
        most = settings.most_body_bytes if is_person else settings.most_stranger_bytes
        return await whole_body(receive, headers, most_bytes=most, seconds=settings.body_seconds)


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
