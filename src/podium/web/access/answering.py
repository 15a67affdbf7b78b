"""An answer on its way out: with its headers, counted when it is a stream, and ended when its token is."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Message, Scope, Send

from podium.web.access.entering import person_of, recognise
from podium.web.access.forwarded import address_of
from podium.web.access.headers import told_headers
from podium.web.access.names import asks_loopback
from podium.web.access.refusing import TurnedAway
from podium.web.access.streams import Streams
from podium.web.settings import ConsoleSettings

STREAM = "text/event-stream"


class AnswerOver(Exception):
    """Nothing more is to be sent; the handler may stop."""


class Answering:
    """One answer. Whoever made it calls `end`."""

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
        """Why the handler's answer was not begun."""

    async def send(self, message: Message) -> None:
        """Raises `AnswerOver` when the handler need not go on."""
        if self.is_over:
            raise AnswerOver
        if message["type"] == "http.response.start":
            await self._begin(message)
            return
        if self._counted and not is_still_known(self._scope):
            message = {"type": "http.response.body", "body": b"", "more_body": False}
            self.is_over = True
        await self._send(message)
        if self.is_over:
            raise AnswerOver

    async def _begin(self, message: Message) -> None:
        if Headers(raw=message["headers"]).get("content-type", "").startswith(STREAM):
            self._count()
        headers = told_headers(
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
        """Count it no more."""
        if self._counted:
            self._streams.end(self._counted)
            self._counted = ""


def limit_key(scope: Scope) -> str:
    """Whom limits count: a token, a link's session, or an address of strangers."""
    person = person_of(HTTPConnection(scope))
    if person is None:
        return f"from {address_of(scope)}"
    return person.token_id or f"{person.name} for {person.card}"


def is_still_known(scope: Scope) -> bool:
    """Whether who began this would be let in again: their token may have been revoked, or be over."""
    person = person_of(HTTPConnection(scope))
    return person is None or recognise(HTTPConnection(scope)) is not None
