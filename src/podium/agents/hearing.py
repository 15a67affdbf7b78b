"""Listening to a program of a turn until it is over, and never leaving it behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from podium.domain.launching import Ended
from podium.ports import Process

Hear = Callable[[str], Awaitable[None] | None]
"""Takes a line as it comes; the next one waits for it. What it raises ends the program and is handed on."""


async def hear_out(process: Process, hear: Hear) -> Ended:
    """Hand on every line until the tree is dead. Cancelled, or when `hear` raises, it is ended first.

    Bytes that are no UTF-8 are replaced.
    """
    ending = asyncio.ensure_future(process.wait())
    try:
        async for line in process.lines():
            working = hear(line.decode(errors="replace"))
            if working is not None:
                await working
        return await ending
    except BaseException:
        await _end(process, ending)
        raise


async def _end(process: Process, ending: asyncio.Future[Ended]) -> None:
    """Come back when nothing is left of it, however often one is cancelled meanwhile."""
    # A cancelled wait ends the tree with the launcher's own patience.
    ending.cancel()
    while not ending.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({ending})
    if not ending.cancelled():
        ending.exception()
    await process.end()
