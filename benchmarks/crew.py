"""Several processes that are made ready, begin together when they are told to, and end together."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

READY_SECONDS = 120.0
"""Eight interpreters that import DBOS on two busy cores take a while."""
LEAVE_SECONDS = 20.0


class Member:
    """One of them. It speaks in lines of JSON and hears lines; the end of its input is its end."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def hear(self, seconds: float = READY_SECONDS) -> dict[str, Any]:
        """The next thing it says. Raises `SystemExit` when it ended or is silent for so long."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise SystemExit(f"process {self.pid} was silent for {seconds:g} s") from None
        if not line:
            raise SystemExit(f"process {self.pid} ended with {await self._process.wait()}")
        payload: dict[str, Any] = json.loads(line)
        return payload

    def check(self) -> None:
        """Raises `SystemExit` when it has ended."""
        if self._process.returncode is not None:
            raise SystemExit(f"process {self.pid} ended with {self._process.returncode}")

    def send_line(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    async def leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def crew(
    command: Sequence[str], size: int, environ: Mapping[str, str] | None = None
) -> AsyncIterator[list[Member]]:
    """So many processes of one command, all of which have said that they are ready."""
    members: list[Member] = []
    try:
        for _ in range(size):
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=dict(environ) if environ is not None else None,
            )
            members.append(Member(process))
        for member in members:
            await member.hear()
        yield members
    finally:
        await asyncio.gather(*(member.leave() for member in members))


def module(name: str, *arguments: str) -> list[str]:
    """The command of a module beside this one, by the interpreter that runs us."""
    return [sys.executable, "-m", f"benchmarks.{name}", *arguments]


# --- the other side --------------------------------------------------------------------------


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


async def read_line() -> str:
    """The next line that this process is told; empty at the end."""
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()
