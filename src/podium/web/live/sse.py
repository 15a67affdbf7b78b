"""Server-sent events: how what happens is written down a connection that stays open."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import NamedTuple

import anyio
from fastapi import Request
from fastapi.responses import StreamingResponse

from podium.domain.errors import BadInput

HEARTBEAT_SECONDS = 15.0
"""A line that says nothing, so that neither proxies nor browsers take silence for an end."""
RETRY_MILLISECONDS = 2000
"""After which a browser that lost the connection asks again."""
HIGHEST = 2**63 - 1
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
CLOSED = "event: end\ndata: \n\n"


class Part(NamedTuple):
    """One message of a stream."""

    data: str
    event: str = ""
    id: str = ""
    """What `Last-Event-ID` will say of a browser that saw this one last."""

    def text(self) -> str:
        # A line break in a field would begin another one; data has as many lines as it has.
        lines = [f"event: {self.event}"] if self.event else []
        lines += [f"id: {self.id}"] if self.id else []
        lines += [f"data: {line}" for line in _lines(self.data)]
        return "\n".join(lines) + "\n\n"


def _lines(data: str) -> list[str]:
    return data.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def streamed(parts: AsyncIterator[Part], *, seconds: float | None = None) -> StreamingResponse:
    """The parts as they come, until they end, `seconds` have passed or who asked is gone.

    `event: end` is the last: a page that sees it need not ask again.
    """
    return StreamingResponse(
        _written(parts, seconds), media_type="text/event-stream", headers=HEADERS
    )


def last_seen(request: Request, after: int | None = None) -> int | None:
    """Behind which event a stream goes on: what a browser saw last, else `after`. Raises `BadInput`."""
    said = request.headers.get("last-event-id", "")
    if not said:
        return after
    if not (said.isascii() and said.isdecimal()) or int(said) > HIGHEST:
        raise BadInput(f"Last-Event-ID {said[:60]!r} is not of this stream; leave it out")
    return int(said)


async def _written(parts: AsyncIterator[Part], seconds: float | None) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MILLISECONDS}\n: open\n\n"
    until = math.inf if seconds is None else time.monotonic() + seconds
    async with aclosing(parts):  # type: ignore[type-var]  # streams are async generators
        coming = asyncio.ensure_future(anext(parts, None))
        try:
            while (left := until - time.monotonic()) > 0:
                # The one that is awaited must not be cancelled: it would end what follows.
                await asyncio.wait([coming], timeout=min(HEARTBEAT_SECONDS, left))
                if not coming.done():
                    yield ": still here\n\n"
                    continue
                part = coming.result()
                if part is None:
                    break
                yield part.text()
                coming = asyncio.ensure_future(anext(parts, None))
        finally:
            coming.cancel()
            # When whoever asked is gone, every wait here would be cancelled again.
            with anyio.CancelScope(shield=True):
                await asyncio.wait([coming])
                await parts.aclose()  # type: ignore[attr-defined]  # an async generator, as above
    yield CLOSED
