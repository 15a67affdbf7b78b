"""Completion of work whose waiting task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def run_to_completion(work: Awaitable[T]) -> T:
    """Finish the work even when cancelled meanwhile, however often; the cancellation is raised afterwards.

    A failure of the work is then a note on the cancellation.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled() and (failure := task.exception()) is not None:
        cancelled.add_note(f"meanwhile: {str(failure) or type(failure).__name__}")
    raise cancelled


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work in a thread of its own. Returns or raises only when it has ended.

    A cancelled `asyncio.to_thread` leaves its thread running, so a file could change after the
    caller has gone on. Here the cancellation waits for the thread.
    """
    return await run_to_completion(asyncio.to_thread(work, *args, **kwargs))
