"""Server-sent events, and the schedule by which a page refreshes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

import anyio
from fastapi import Request
from fastapi.responses import StreamingResponse

from podium.core.errors import BadInput, PodiumError
from podium.core.events import Event
from podium.web.live.hub import Gap, Hub

HEARTBEAT_SECONDS = 15.0
"""Keep-alive interval, so that neither proxies nor browsers take silence for an end."""
RETRY_MILLISECONDS = 2000
"""Delay after which a browser reconnects."""
HIGHEST = 2**63 - 1
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
CLOSED = "event: end\ndata: \n\n"


class Part(NamedTuple):
    """One message of a stream."""

    data: str
    event: str = ""
    id: str = ""
    """`Last-Event-ID` a browser sends after this message."""

    def text(self) -> str:
        # A line break in a field would begin another one; data has as many lines as it has.
        lines = [f"event: {self.event}"] if self.event else []
        lines += [f"id: {self.id}"] if self.id else []
        lines += [f"data: {line}" for line in _lines(self.data)]
        return "\n".join(lines) + "\n\n"


def _lines(data: str) -> list[str]:
    return data.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def streamed(parts: AsyncIterator[Part], *, seconds: float | None = None) -> StreamingResponse:
    """Stream the parts until they end, `seconds` have passed or the client is gone.

    `event: end` is the last: a page that sees it need not ask again.
    """
    return StreamingResponse(
        _written(parts, seconds), media_type="text/event-stream", headers=HEADERS
    )


def resume_after(request: Request, after: int | None = None) -> int | None:
    """Return the event a stream resumes after: the browser's last one, else `after`. Raises `BadInput`."""
    value = request.headers.get("last-event-id", "")
    if not value:
        return after
    if not (value.isascii() and value.isdecimal()) or int(value) > HIGHEST:
        raise BadInput(f"Last-Event-ID {value[:60]!r} is not valid; omit it")
    return int(value)


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


LOOK_SECONDS = 1.0
"""Refresh interval without events: a process that is killed emits none."""
SETTLE_SECONDS = 0.3
"""Delay that batches events before parts of a page are rendered again."""


async def _same() -> object:
    return None


class Topic(NamedTuple):
    """Subject of a part of a page."""

    name: str
    """Message that tells the page to refresh."""
    types: tuple[str, ...]
    """Event types that may change it."""
    stamp: Callable[[], Awaitable[object]] = _same
    """Changes when something changed that no event reports; cheap, for it is called at every refresh."""


async def topic_updates(
    hub: Hub, topics: Sequence[Topic], settle_seconds: float = SETTLE_SECONDS
) -> AsyncIterator[Part]:
    """Yield the name of each topic at once, and again whenever it may have changed.

    However much happens, a name is said once in `settle_seconds`.
    """
    types = tuple(sorted({kind for topic in topics for kind in topic.types}))
    news = [topic.name for topic in topics]
    stamps = {topic.name: await _stamp(topic, None) for topic in topics}
    async for item in with_looks(hub, None, None, types, settle_seconds=settle_seconds):
        if item is not None:
            news += [topic.name for topic in topics if _concerns(item, topic)]
            continue
        for topic in topics:
            before = stamps[topic.name]
            stamps[topic.name] = await _stamp(topic, before)
            if topic.name in news or stamps[topic.name] != before:
                yield Part("new", event=topic.name)
        news = []


async def _stamp(topic: Topic, before: object) -> object:
    """Return the topic's stamp; the previous one when it cannot be read, for a stream that ended would be reopened all the time."""
    try:
        return await topic.stamp()
    except (PodiumError, OSError):
        return before


def _concerns(item: Event | Gap, topic: Topic) -> bool:
    return isinstance(item, Gap) or item.body.type in topic.types


async def with_looks(
    hub: Hub,
    run_id: str | None,
    after: int | None,
    types: tuple[str, ...] = (),
    *,
    settle_seconds: float = SETTLE_SECONDS,
) -> AsyncIterator[Event | Gap | None]:
    """Yield events as they come, and None when the page should refresh: at the start, and at the end."""
    stream = hub.follow(run_id, after=after, types=types)
    async with aclosing(stream):  # type: ignore[type-var]  # the hub gives async generators
        coming = asyncio.ensure_future(anext(stream, None))
        look_at = time.monotonic()
        try:
            while True:
                if (left := look_at - time.monotonic()) <= 0:
                    yield None
                    look_at = time.monotonic() + max(LOOK_SECONDS, settle_seconds)
                    continue
                await asyncio.wait([coming], timeout=left)
                if not coming.done():
                    continue
                if (item := coming.result()) is None:
                    yield None
                    return
                yield item
                look_at = min(look_at, time.monotonic() + settle_seconds)
                coming = asyncio.ensure_future(anext(stream, None))
        finally:
            coming.cancel()
            await asyncio.wait([coming])
