"""One invocation of the command line: its global options, and the way in to Podium."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property
from typing import Any, TypeVar

from podium.cli.options import Options
from podium.cli.screen import Screen
from podium.domain.errors import Interrupted, UnknownId
from podium.wiring import Configuration, Podium, load_configuration, open_podium

T = TypeVar("T")


class Door:
    """What a command works with."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.screen = Screen(json=options.json)

    @cached_property
    def configuration(self) -> Configuration:
        return load_configuration(os.environ, project=self.options.project)

    @property
    def user(self) -> str:
        return self.configuration.settings.user

    @property
    def has_state(self) -> bool:
        """Whether anything was ever recorded here. Looking must not make a database."""
        return Podium(self.configuration, os.environ).database.exists()

    def must_have_state(self, kind: str, identifier: str) -> None:
        """Raise `UnknownId` where nothing was ever recorded, without making a database to look in."""
        if not self.has_state:
            raise UnknownId(kind, identifier)

    def run(self, work: Callable[[Podium], Awaitable[T]]) -> T:
        """Do something with an open Podium, and close it, also when interrupted."""

        async def inside() -> T:
            async with open_podium(self.configuration, os.environ) as podium:
                return await work(podium)

        return run_to_end(inside())


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run on a fresh loop. A polite request to end is taken like Ctrl-C: everything is closed first."""
    return asyncio.run(_ending_politely(work))


async def _ending_politely(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    asked: list[int] = []

    def end() -> None:
        asked.append(signal.SIGTERM)
        task.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        return await task
    except asyncio.CancelledError:
        if asked:
            raise Interrupted("asked to end") from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
