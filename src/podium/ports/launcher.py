"""The launcher: every child process of Podium starts here."""

from __future__ import annotations

from typing import Protocol

from podium.domain.launching import Ended, Spawn


class Process(Protocol):
    """A started process tree."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> Ended:
        """Wait for the end, or for the limits. On return no process of the tree is alive."""
        ...

    async def end(self, grace_seconds: float = 5.0) -> Ended:
        """TERM, wait for the grace, KILL; all descendants, also those that called `setsid`."""
        ...


class Launcher(Protocol):
    """Starts process trees that cannot outlive their turn or Podium itself."""

    async def start(self, spawn: Spawn) -> Process:
        """Start it. Raises `ToolMissing` when the program is not there."""
        ...

    async def run(self, spawn: Spawn) -> Ended:
        """Start, wait, and end the whole tree; also when cancelled."""
        ...
