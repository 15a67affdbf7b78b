"""Work on files that takes more than a moment, kept off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

from podium.agents.headless.home import Home, Login, private_home
from podium.agents.kit import AgentKit
from podium.domain.asking import Turn

T = TypeVar("T")


async def off_loop(work: Callable[[], T]) -> T:
    """Do it in a thread. Cancelled, it comes back when the work is done: nobody may follow into half of it."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({doing})
        if not doing.cancelled():
            doing.exception()
        raise


@asynccontextmanager
async def home_off_loop(
    kit: AgentKit,
    turn: Turn,
    agent: str,
    *,
    keep: Sequence[str] = (),
    logins: Sequence[Login] = (),
) -> AsyncIterator[Home]:
    """A `private_home` that is swept, seeded and left in a thread."""
    place = private_home(kit, turn, agent, keep=keep, logins=logins)
    held = ExitStack()
    try:
        yield await off_loop(partial(held.enter_context, place))
    except BaseException as error:
        # How the turn ended matters for what comes back from the home.
        await off_loop(partial(held.__exit__, type(error), error, error.__traceback__))
        raise
    await off_loop(held.close)
