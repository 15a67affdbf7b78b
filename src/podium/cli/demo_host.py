"""The demo's other processes: those that host its run, and what people type beside it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from podium.domain.errors import PodiumError


class DemoFailed(PodiumError):
    """The demo did not go as it must. Its folder is kept to look at."""


class Host:
    """A process that hosts the run. What it shows is left aside; its complaints are kept."""

    def __init__(self, process: asyncio.subprocess.Process, said: IO[bytes]) -> None:
        self._process = process
        self._said = said
        self.was_killed = False

    @classmethod
    @asynccontextmanager
    async def started(
        cls, command: Sequence[str], environ: Mapping[str, str]
    ) -> AsyncIterator[Host]:
        """A process that is asked to end, and has ended, when the context does."""
        with tempfile.TemporaryFile() as said:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            try:
                yield cls(process, said)
            finally:
                if process.returncode is None:
                    process.terminate()
                await process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """As `kill -9` does."""
        self.was_killed = True
        self._process.kill()

    async def end(self) -> None:
        """Wait for its end. Raises `DemoFailed` for a bad one that nobody brought about."""
        code = await self._process.wait()
        if code != 0 and not self.was_killed:
            self._said.seek(0)
            raise DemoFailed(f"the run's process left with {_last_words(code, self._said.read())}")


def podium_command(folder: Path, *words: str) -> list[str]:
    """This very Podium, in the project."""
    return [sys.executable, "-m", "podium", *words, "--project", str(folder)]


def done(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    """What a command wrote. Raises `DemoFailed` with its last words when it did not succeed."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if ended.returncode == 0:
        return ended.stdout.decode(errors="replace")
    how = _last_words(ended.returncode, ended.stderr)
    raise DemoFailed(f"`{' '.join(command)}` left with {how}")


def _last_words(code: int, stderr: bytes) -> str:
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return f"{code}: {lines[-1]}" if lines else f"{code} and said nothing"
