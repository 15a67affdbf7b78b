"""The inbox of work orders, tended while a worker serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from podium.domain.work import QueueSpec
from podium.flows.sense.kit import ORDERS
from podium.flows.sense.tending import InboxTender
from podium.telling.untrusted import shown_line
from podium.wiring import Podium
from podium.wiring.ordering import inbox_tender

AGAIN_SECONDS = 5.0
"""How long the inbox is left alone after something that nobody foresaw."""

Tell = Callable[[str], None]
TakeMore = Callable[[], Awaitable[int]]
"""Takes what lies in the inbox now, and gives how many orders that were."""


@asynccontextmanager
async def tended(
    podium: Podium, queues: Sequence[QueueSpec], tell: Tell, *, once: bool
) -> AsyncIterator[TakeMore]:
    """While open, work orders of the inbox are taken, where their queue is served.

    With `once` only what lies there now: whoever waits for the end of the work takes more then.
    """
    if ORDERS not in {queue.name for queue in queues}:
        yield _nothing
        return
    tender, told = await inbox_tender(podium), set[str]()
    if tender.paused:
        podium.tell(tender.paused)

    async def take_more() -> int:
        taken = await tender.tend()
        for why in tender.inbox.passed_over:
            if why not in told:
                tell(f"podium: left in the inbox: {shown_line(why)}")
        told.update(tender.inbox.passed_over)
        return taken

    await take_more()
    if once:
        yield take_more
        return
    async with _in_the_background(tender, tell):
        yield take_more


@asynccontextmanager
async def _in_the_background(tender: InboxTender, tell: Tell) -> AsyncIterator[None]:
    stop = asyncio.Event()
    tending = asyncio.create_task(_tend_on(tender, stop, tell), name="podium worker: inbox")
    try:
        yield
    finally:
        stop.set()
        await tending


async def _tend_on(tender: InboxTender, stop: asyncio.Event, tell: Tell) -> None:
    """Until told to stop. The tender tells what it cannot do; nothing else ends it silently either."""
    while not stop.is_set():
        try:
            await tender.serve(stop)
        except Exception as error:
            tell(f"podium: the inbox could not be tended: {error!r}; it is tried again")
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await stop.wait()


async def _nothing() -> int:
    return 0
