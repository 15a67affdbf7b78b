"""Work that a cancellation must not cut in half."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

Result = TypeVar("Result")


async def to_the_end(work: Coroutine[None, None, Result]) -> Result:
    """What it gives, once it is done. Cancellations wait for that, however many come, and then go on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled() and (trouble := task.exception()) is not None:
        cancelled.add_note(f"meanwhile: {trouble}")
    raise cancelled
