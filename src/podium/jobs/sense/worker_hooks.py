"""Hooks of `podium worker`: the inbox tended while it serves, and ticks of other interfaces ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

from podium.app.app import Podium
from podium.cli.queue_worker import WorkerTask
from podium.core.errors import LockHeld
from podium.core.events import Event
from podium.core.model import Json
from podium.core.work import QueueSpec, Run
from podium.jobs.sense import SENSE, take_in
from podium.jobs.sense.composition import sense_queue, tick_deps
from podium.jobs.sense.job import CANDIDATE, WORK_ORDER
from podium.jobs.sense.options import ORDERS
from podium.jobs.sense.orders.inbox_tender import InboxTender
from podium.jobs.sense.orders.worker import inbox_tender
from podium.ports import EventQuery, StoreView
from podium.render.text import escaped_line

AGAIN_SECONDS = 5.0
"""Seconds before the inbox is tried again after an unexpected error."""

Notify = Callable[[str], None]
TakeMore = Callable[[], Awaitable[int]]
"""Takes what lies in the inbox now, and gives how many orders that were."""


@asynccontextmanager
async def tended(
    podium: Podium, queues: Sequence[QueueSpec], notify: Notify, *, once: bool
) -> AsyncIterator[TakeMore]:
    """Take work orders from the inbox while open, if their queue is served.

    With `once` only what lies there now: whoever waits for the end of the work takes more then.
    """
    if ORDERS not in {queue.name for queue in queues}:
        yield _nothing
        return
    tender, reported = await inbox_tender(podium), set[str]()
    if tender.paused:
        podium.notify(tender.paused)

    async def take_more() -> int:
        taken = await tender.tend()
        for why in tender.inbox.passed_over:
            if why not in reported:
                notify(f"podium: left in the inbox: {escaped_line(why)}")
        reported.update(tender.inbox.passed_over)
        return taken

    await take_more()
    if once:
        yield take_more
        return
    async with _in_the_background(tender, notify):
        yield take_more


@asynccontextmanager
async def _in_the_background(tender: InboxTender, notify: Notify) -> AsyncIterator[None]:
    stop = asyncio.Event()
    tending = asyncio.create_task(_tend_on(tender, stop, notify), name="podium worker: inbox")
    try:
        yield
    finally:
        stop.set()
        await tending


async def _tend_on(tender: InboxTender, stop: asyncio.Event, notify: Notify) -> None:
    """Tend the inbox until told to stop; errors are reported and it is tried again."""
    while not stop.is_set():
        try:
            await tender.serve(stop)
        except Exception as error:
            notify(f"podium: cannot process the inbox: {error!r}; trying again")
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await stop.wait()


async def _nothing() -> int:
    return 0


ENDS = ("run_succeeded", "run_failed", "run_cancelled")


@asynccontextmanager
async def ticks_ended(
    podium: Podium, queues: Sequence[QueueSpec], last_position: int, notify: Callable[[str], None]
) -> AsyncIterator[None]:
    """Record ticks whose planning has ended while open, if the loop's queue is served.

    `last_position` is the last event that was there before. What is missed here, the next tick takes in.
    """
    if sense_queue(podium.configuration).name not in {queue.name for queue in queues}:
        yield
        return
    ending = asyncio.create_task(
        _end_on(podium, last_position, notify), name="podium worker: ticks"
    )
    try:
        yield
    finally:
        ending.cancel()
        with suppress(asyncio.CancelledError):
            await ending
    # Who leaves because nothing is left to do leaves no tick open.
    await _end(podium, notify)


async def _end_on(podium: Podium, last_position: int, notify: Callable[[str], None]) -> None:
    journal, store = await podium.journal(), await podium.store()
    async for event in journal.follow(EventQuery(types=ENDS, after_position=last_position)):
        run = await store.read(partial(_run_of, event))
        if run is not None and run.flow == SENSE:
            await _end(podium, notify)


async def _end(podium: Podium, notify: Callable[[str], None]) -> None:
    try:
        with suppress(LockHeld):  # a loop ticks here, and sees to it
            await take_in(await tick_deps(podium))
    except Exception as error:
        notify(f"podium: cannot record a tick: {error!r}; the next tick records it")


def _run_of(event: Event, view: StoreView) -> Run | None:
    return view.run(event.run_id)


class SenseWorker(WorkerTask):
    """Takes orders from the inbox, and records ticks whose planning has ended."""

    brief_queues = frozenset((ORDERS, SENSE))

    async def __aenter__(self) -> SenseWorker:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(
                ticks_ended(self.podium, self.queues, self.position, self.notify)
            )
            self._take_more = await stack.enter_async_context(
                tended(self.podium, self.queues, self.notify, once=self.once)
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    async def take_more(self) -> int:
        return await self._take_more()

    @staticmethod
    def facts(run: Run) -> Mapping[str, Json]:
        job = run.input if isinstance(run.input, dict) else {}
        if run.flow == WORK_ORDER:
            order = job.get("order")
            wo_id = str(order["id"] if isinstance(order, dict) else job.get("file", ""))
        else:
            wo_id = str(job.get("wo_id", "")) if run.flow == CANDIDATE else ""
        return {"wo_id": wo_id} if wo_id else {}
