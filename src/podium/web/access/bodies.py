"""A request's body, whole before any handler begins: not too much, and not too slowly."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from podium.web.access.refusing import TurnedAway


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
