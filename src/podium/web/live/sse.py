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


LOOK_SECONDS = 1.0
"""After which is looked again although nothing was heard: a process that is killed says nothing."""
SETTLE_SECONDS = 0.3
"""So long is waited for more of the same before parts of a page are made anew."""


async def _same() -> object:
    return None


class Topic(NamedTuple):
    """What a part of a page is about."""

    name: str
    """The message by which the page is told to look."""
    types: tuple[str, ...]
    """Events after which it may read otherwise."""
    mark: Callable[[], Awaitable[object]] = _same
    """What is another one when something changed that no event tells; cheap, for it is asked at every look."""


async def told_anew(
    hub: Hub, topics: Sequence[Topic], settle_seconds: float = SETTLE_SECONDS
) -> AsyncIterator[Part]:
    """The name of each topic at once, and again whenever there may be something new to see of it.

    However much happens, a name is said once in `settle_seconds`.
    """
    types = tuple(sorted({kind for topic in topics for kind in topic.types}))
    news = [topic.name for topic in topics]
    marks = {topic.name: await _mark(topic, None) for topic in topics}
    async for each in with_looks(hub, None, None, types, settle_seconds=settle_seconds):
        if each is not None:
            news += [topic.name for topic in topics if _tells(each, topic)]
            continue
        for topic in topics:
            before = marks[topic.name]
            marks[topic.name] = await _mark(topic, before)
            if topic.name in news or marks[topic.name] != before:
                yield Part("new", event=topic.name)
        news = []


async def _mark(topic: Topic, before: object) -> object:
    """As it was, where it cannot be told: a page that asks says why, and a stream that ended would be asked for anew all the time."""
    try:
        return await topic.mark()
    except (PodiumError, OSError):
        return before


def _tells(each: Event | Gap, topic: Topic) -> bool:
    return isinstance(each, Gap) or each.body.type in topic.types


async def with_looks(
    hub: Hub,
    run_id: str | None,
    after: int | None,
    types: tuple[str, ...] = (),
    *,
    settle_seconds: float = SETTLE_SECONDS,
) -> AsyncIterator[Event | Gap | None]:
    """What is heard at once, and None when it is time to look how things stand: first of all, and last."""
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
                if (each := coming.result()) is None:
                    yield None
                    return
                yield each
                look_at = min(look_at, time.monotonic() + settle_seconds)
                coming = asyncio.ensure_future(anext(stream, None))
        finally:
            coming.cancel()
            await asyncio.wait([coming])
