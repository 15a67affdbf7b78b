"""When to look how things stand: soon after something was heard, and now and then although nothing was."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from podium.domain.errors import PodiumError
from podium.domain.events import Event
from podium.web.live.channel import Gap
from podium.web.live.hub import Hub
from podium.web.live.sse import Part

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
