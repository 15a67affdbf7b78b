"""One invocation of the command line: its global options, and the way in to Podium."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, TypeVar

from podium.cli.options import Options
from podium.cli.screen import Screen
from podium.domain.errors import Interrupted, UnknownId
from podium.wiring import Configuration, Podium, load_configuration

T = TypeVar("T")

FAULTS_TOLD = 5
"""How many faults beside the record are told one by one."""


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
            async with self._opened() as podium:
                return await work(podium)

        return run_to_end(inside())

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Podium]:
        """An open Podium. What it could not keep up is known, and told, once it is closed."""
        podium = Podium(self.configuration, os.environ)
        try:
            yield podium
        finally:
            await podium.close()
            self._tell(podium.faults)

    def _tell(self, faults: Sequence[str]) -> None:
        for fault in faults[:FAULTS_TOLD]:
            self.screen.aside(f"podium: {fault}")
        if faults:
            more = len(faults) - FAULTS_TOLD
            others = f"{more} more like it; " if more > 0 else ""
            self.screen.aside(f"podium: {others}no event is lost; `podium doctor` looks again")


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
