"""A launcher that starts nothing and answers from a table."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Callable, Mapping

from podium.domain.errors import ToolMissing
from podium.domain.launching import Ended, Spawn

PreparedEnd = Ended | Callable[[Spawn], Ended] | None
"""How a process ends: so, by a function of its spawn, or (None) not until it is ended."""


class FakeProcess:
    """A process that exists on paper."""

    def __init__(self, pid: int, spawn: Spawn, prepared: PreparedEnd) -> None:
        self._pid = pid
        self.heard = spawn.stdin
        self.input_open = spawn.interactive
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        if prepared is not None:
            self._ended.set_result(prepared(spawn) if callable(prepared) else prepared)
        elif spawn.limits.seconds is not None:
            # No time passes here, so a process that would never end meets its limit at once.
            self._ended.set_result(_killed(seconds=spawn.limits.seconds, timed_out=True))

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def alive(self) -> bool:
        return not self._ended.done()

    async def lines(self, *, ends: bool = False) -> AsyncIterator[bytes]:
        """The prepared stdout, line by line; then nothing until the process has ended."""
        if self._ended.done():
            for line in self._ended.result().stdout.splitlines(ends):
                yield line
        await self.wait()

    async def send(self, data: bytes) -> None:
        self.heard += data

    def close_input(self) -> None:
        self.input_open = False

    async def wait(self) -> Ended:
        return await asyncio.shield(self._ended)

    async def end(self, grace_seconds: float = 5.0) -> Ended:
        if self.alive:
            self._ended.set_result(_killed(cancelled=True))
        return await self.wait()


class FakeLauncher:
    """Ends each process as the table says by its argv, and remembers every spawn.

    The longest entry that the argv begins with answers, so `("git",)` stands for all of git.
    """

    def __init__(self, ends: Mapping[tuple[str, ...], PreparedEnd] | None = None) -> None:
        self._ends = dict(ends or {})
        self._pids = itertools.count(1000)
        self.spawns: list[Spawn] = []
        self.processes: list[FakeProcess] = []

    async def start(self, spawn: Spawn) -> FakeProcess:
        prepared = self._end_of(spawn)
        self.spawns.append(spawn)
        self.processes.append(FakeProcess(next(self._pids), spawn, prepared))
        return self.processes[-1]

    async def run(self, spawn: Spawn) -> Ended:
        process = await self.start(spawn)
        try:
            return await process.wait()
        finally:
            await process.end()

    async def on_terminal(self, spawn: Spawn) -> tuple[str, ...]:
        """Its own words: who starts them starts it as it is."""
        self._end_of(spawn)
        self.spawns.append(spawn)
        return spawn.argv

    def _end_of(self, spawn: Spawn) -> PreparedEnd:
        for length in range(len(spawn.argv), 0, -1):
            if spawn.argv[:length] in self._ends:
                return self._ends[spawn.argv[:length]]
        raise ToolMissing(
            f"{spawn.argv[0]!r} is not in this launcher's table; add an entry for {spawn.argv!r}"
        )


def _killed(seconds: float = 0.0, timed_out: bool = False, cancelled: bool = False) -> Ended:
    return Ended(
        exit_code=None,
        signal=signal.SIGTERM,
        seconds=seconds,
        timed_out=timed_out,
        cancelled=cancelled,
    )
