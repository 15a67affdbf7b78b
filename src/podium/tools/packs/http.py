"""Tools behind an HTTP endpoint: arguments and key go there, a JSON object comes back."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from podium.core.errors import OutcomeUnknown, ToolBroke
from podium.core.model import Json
from podium.platform.completion import run_to_completion
from podium.tools.packs.answers import MAX_ANSWER, complaint, json_object
from podium.tools.packs.filling import filled
from podium.tools.packs.handlers import HttpHandler
from podium.tools.scope import ToolScope

_MAX_REDIRECTS = 3
_SAME_REQUEST_AGAIN = (307, 308)
"""Redirects after which a request is sent as it was. All others would make it another one."""


class PackHttpResponse(NamedTuple):
    """A response, whole."""

    status: int
    location: str
    body: bytes


async def call_http(
    handler: HttpHandler,
    arguments: dict[str, Json],
    scope: ToolScope,
    settings: Mapping[str, str],
) -> dict[str, Json]:
    """The endpoint's answer. Raises `OutcomeUnknown` when the call may have happened, else `ToolBroke`."""
    url = filled(handler.url, settings)
    headers = {
        name: scope.reveal(filled(value, settings)) for name, value in handler.headers.items()
    }
    headers |= {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Idempotency-Key": scope.key,
    }
    body = json.dumps({"arguments": arguments, "key": scope.key}).encode()
    try:
        async with asyncio.timeout(handler.timeout):
            answer = await _exchanged(handler.method, url, headers, body, handler.timeout)
    except TimeoutError:
        raise OutcomeUnknown(
            f"{_named(url)} gave no answer within {handler.timeout:g} s; whether it acted is not known"
        ) from None
    if not 200 <= answer.status < 300:
        raise ToolBroke(f"{_named(url)} answered {answer.status}: {complaint(answer.body)}")
    return json_object(answer.body, _named(url))


async def _exchanged(
    method: str, url: str, headers: Mapping[str, str], body: bytes, timeout_seconds: float
) -> PackHttpResponse:
    """The answer at the end of all redirects, none of which may lead to another host."""
    first = _checked(url)
    for _ in range(_MAX_REDIRECTS + 1):
        line = _HttpExchange(_checked(url), timeout_seconds)
        answer = await line.exchange(method, headers, body)
        if answer.status not in _SAME_REQUEST_AGAIN:
            return answer
        url = urljoin(url, answer.location)
        if (urlsplit(url).scheme, urlsplit(url).netloc) != (first.scheme, first.netloc):
            raise ToolBroke(
                f"{_named(first.geturl())} sends on to another host; nothing was sent there"
            )
    raise ToolBroke(f"{_named(first.geturl())} sends on and on; it was given up")


class _HttpExchange:
    """One request over one connection, in a thread that ends when the call does."""

    def __init__(self, url: SplitResult, timeout_seconds: float) -> None:
        self._url = url
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        try:
            self._connection = kind(url.hostname or "", url.port, timeout=timeout_seconds)
        except (ValueError, HTTPException):
            raise ToolBroke(f"{_named(url.geturl())} is no address that can be called") from None

    async def exchange(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> PackHttpResponse:
        working = asyncio.ensure_future(asyncio.to_thread(self._exchange, method, headers, body))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            self._hang_up()
            with suppress(ToolBroke):
                await run_to_completion(working)
            raise
        finally:
            self._connection.close()

    def _hang_up(self) -> None:
        """Make the thread's reading end."""
        held = self._connection.sock
        if isinstance(held, socket.socket):
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)

    def _exchange(self, method: str, headers: Mapping[str, str], body: bytes) -> PackHttpResponse:
        named = _named(self._url.geturl())
        target = self._url._replace(scheme="", netloc="", fragment="").geturl() or "/"
        try:
            self._connection.connect()
        except (OSError, UnicodeError) as error:
            raise ToolBroke(
                f"{named} cannot be reached, so nothing was done: {_why(error)}"
            ) from None
        try:
            self._connection.request(method, target, body, dict(headers))
        except ValueError:
            # The words of this error quote the header, which may hold a secret.
            raise ToolBroke(
                f"a header for {named} holds what no header can; nothing was sent"
            ) from None
        except OSError as error:
            raise OutcomeUnknown(
                f"{named} hung up; whether it acted is not known: {_why(error)}"
            ) from None
        return self._answer(named)

    def _answer(self, named: str) -> PackHttpResponse:
        try:
            # What is not read to its end would else keep the connection open.
            with self._connection.getresponse() as response:
                body = response.read(MAX_ANSWER + 1)
        except (OSError, HTTPException, ValueError) as error:
            problem = f"gave no whole answer, so whether it acted is not known: {_why(error)}"
            raise OutcomeUnknown(f"{named} {problem}") from None
        if len(body) > MAX_ANSWER:
            raise ToolBroke(f"{named} answered with more than {MAX_ANSWER} bytes; it has acted")
        return PackHttpResponse(response.status, response.getheader("Location") or "", body)


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and not parts.username
    except ValueError:
        sound = None
    if not sound or any(character.isspace() or ord(character) < 32 for character in url):
        raise ToolBroke(f"{_named(url)} is no http address; mend the registry or the setting in it")
    return parts


def _named(url: str) -> str:
    """The address without query and login, which may hold secrets."""
    return repr(url.partition("?")[0].rpartition("@")[2])


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not good ({error.verify_message})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
