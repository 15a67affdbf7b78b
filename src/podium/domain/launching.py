"""Child processes as data: what to start, how it is confined, how it ended."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from podium.domain.model import NonEmpty, Noun


class Mount(Noun):
    """A folder or file that a confined process sees."""

    source: NonEmpty
    target: NonEmpty
    writable: bool = False


class ProcessLimits(Noun):
    """What a process tree may take. None means no limit of that kind."""

    seconds: float | None = None
    output_bytes: int = 1_000_000
    """How much of each of stdout and stderr is kept; the rest is counted and dropped.

    The head is kept, but of an interactive process's stderr the last lines.
    """
    line_bytes: int = 128_000_000
    """An interactive process's line is cut to so much."""
    memory_bytes: int | None = None
    processes: int | None = None
    file_bytes: int | None = None


class Confinement(Noun):
    """What a process tree may reach. Launchers refuse what they cannot enforce."""

    kind: Literal["none", "kernel"] = "none"
    mounts: tuple[Mount, ...] = ()
    network: Literal["none", "model-only", "listed", "open"] = "open"
    hosts: tuple[str, ...] = ()
    forwarded_ports: tuple[int, ...] = ()


class Spawn(Noun):
    """A process to start. Nothing of the parent's environment is inherited but what is named."""

    argv: tuple[str, ...] = Field(min_length=1)
    cwd: NonEmpty
    env: dict[str, str] = Field(default_factory=dict)
    """Variables set for the child."""
    inherit_env: tuple[str, ...] = ()
    """Names taken from the parent beside the launcher's own allow-list."""
    stdin: bytes = b""
    interactive: bool = False
    """Its input stays open after `stdin`, and its output comes line by line instead of at the end."""
    limits: ProcessLimits = ProcessLimits()
    confinement: Confinement = Confinement()


class Ended(Noun):
    """How a process tree ended. When you hold this, none of its processes is alive."""

    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_dropped_bytes: int = 0
    stderr_dropped_bytes: int = 0
    seconds: float = 0.0
    timed_out: bool = False
    cancelled: bool = False
    survivors_killed: int = 0
    """Descendants that outlived the first process and were ended."""
