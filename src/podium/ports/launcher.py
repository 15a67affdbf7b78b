"""Launcher of child processes, and what may be reached from a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.core.processes import Confinement, FolderConfinement, ProcessExit, ProcessSpec


class Process(Protocol):
    """A started process tree."""

    @property
    def pid(self) -> int: ...

    def lines(self, *, ends: bool = False) -> AsyncIterator[bytes]:
        """Yield what an interactive process writes to stdout, line by line and without the newline, as it comes.

        Ends when the tree is dead. One reader only; a slow one makes the process wait. A last line
        without a newline counts; one longer than the spawn's `line_bytes` is cut. With `ends` each keeps
        the newline that it had.
        """
        ...

    async def send(self, data: bytes) -> None:
        """Write to an interactive process's stdin. Returns once the pipe has taken all of it.

        A process that went away or closed its input is no error: its end tells more.
        """
        ...

    def close_input(self) -> None:
        """Let an interactive process see the end of its input. What was sent arrives first."""
        ...

    async def wait(self) -> ProcessExit:
        """Wait for the end, or for the limits. On return no process of the tree is alive."""
        ...

    async def end(self, grace_seconds: float = 5.0) -> ProcessExit:
        """TERM, wait for the grace, KILL; all descendants, also those that called `setsid`."""
        ...


class Launcher(Protocol):
    """Starts process trees that cannot outlive their turn or Podium itself."""

    async def start(self, spawn: ProcessSpec) -> Process:
        """Start it. Raises `ToolMissing` when the program is not there, and `CallRefused` when the rules of its
        confinement keep it from being started."""
        ...

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        """Start, wait, and end the whole tree; also when cancelled."""
        ...

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        """The command by which somebody else starts it, once, as the first program of a terminal, within minutes.

        It brings its folder, variables, limits and confinement along; of who starts it only `TERM` and `COLORTERM`, where
        the spawn sets none, and the mark of a tmux server count. It outlives Podium, ends with its whole tree when its program ends or the
        terminal goes, and exits as the program did: 128 + n after a signal, 126 where it could not be started. Raises as
        `start` does for what can be known before. Without Linux it is the spawn's own words. What the spawn says of input, output and time beyond Podium's own
        has no meaning here.
        """
        ...


class ConfinementProvider(Protocol):
    """Knows for every folder that agents work in how it is fenced."""

    async def confinement(self, root: str) -> Confinement:
        """For the processes of an agent, or of a command that one wished for, in this folder.

        Ask before each start. Raises `WorkspaceTampered` when the fence is not as it was put up.
        """
        ...

    def held(self, root: str) -> FolderConfinement | None:
        """The confinement of commands there, when the kernel holds them and git's own data is out of reach.

        None: they are not held so, and the gate has to judge them by their words alone.
        """
        ...
