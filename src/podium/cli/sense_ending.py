"""Ticks that another door began, ended where their planning was served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

from podium.domain.errors import LockHeld
from podium.domain.events import Event
from podium.domain.work import QueueSpec, Run
from podium.flows.sense import SENSE, take_in
from podium.ports import EventQuery, View
from podium.wiring import Podium
from podium.wiring.sensing import sense_queue, tick_kit

ENDS = ("run_succeeded", "run_failed", "run_cancelled")


@asynccontextmanager
async def ticks_ended(
    podium: Podium, queues: Sequence[QueueSpec], seen: int, tell: Callable[[str], None]
) -> AsyncIterator[None]:
    """While open, a tick is recorded when its planning has ended, where the loop's queue is served.

    `seen` is the last event that was there before. What is missed here, the next tick takes in.
    """
    if sense_queue(podium.configuration).name not in {queue.name for queue in queues}:
        yield
        return
    ending = asyncio.create_task(_end_on(podium, seen, tell), name="podium worker: ticks")
    try:
        yield
    finally:
        ending.cancel()
        with suppress(asyncio.CancelledError):
            await ending
    # Who leaves because nothing is left to do leaves no tick open.
    await _end(podium, tell)


async def _end_on(podium: Podium, seen: int, tell: Callable[[str], None]) -> None:
    journal, store = await podium.journal(), await podium.store()
    async for event in journal.follow(EventQuery(types=ENDS, after_position=seen)):
        run = await store.read(partial(_run_of, event))
        if run is not None and run.flow == SENSE:
            await _end(podium, tell)


async def _end(podium: Podium, tell: Callable[[str], None]) -> None:
    try:
        with suppress(LockHeld):  # a loop ticks here, and sees to it
            await take_in(await tick_kit(podium))
    except Exception as error:
        tell(f"podium: a tick could not be recorded: {error!r}; the next one does it")


def _run_of(event: Event, view: View) -> Run | None:
    return view.run(event.run_id)
