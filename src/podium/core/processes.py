"""Child processes as data: what to start, how it is confined, how it ended."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from podium.core.model import FrozenModel, NonEmpty


class Mount(FrozenModel):
    """A folder or file that a confined process sees."""

    source: NonEmpty
    target: NonEmpty
    writable: bool = False
    put_back: bool = False
    """Somebody makes it what it was when the tree is gone. Where nothing can be mounted, a read-only one then
    need not close the writable folder around it."""


class ProcessLimits(FrozenModel):
    """Limits of a process tree. None means no limit of that kind."""

    seconds: float | None = None
    output_bytes: int = 1_000_000
    """Bytes of each of stdout and stderr that are kept; the rest is counted and dropped.

    The head is kept, but of an interactive process's stderr the last lines.
    """
    line_bytes: int = 128_000_000
    """An interactive process's line is cut to so much."""
    memory_bytes: int | None = None
    """Address space of each process."""
    tree_memory_bytes: int | None = None
    """Memory of all of its processes together."""
    processes: int | None = None
    file_bytes: int | None = None
    """Largest size of a file."""
    temporary_bytes: int | None = None
    """Capacity of each private folder of a confined tree, such as `/tmp`. Only where it can be mounted."""


NetworkPolicy = Literal["none", "model-only", "listed", "open"]
"""Connections that a confined tree may make: none, to the model's endpoint, to named hosts too, or all."""


class SubcommandRules(FrozenModel):
    """Limits to a subcommand that may be used."""

    refused_options: tuple[str, ...] = ()
    """Whole names. A long one is refused by every beginning of it too, and with a value behind `=`; a
    single letter is refused inside a bundle too."""
    other_options: tuple[str, ...] = ()
    """Whole names that are beginnings of refused ones and mean something else: `--text`, not `--textconv`."""
    allowed_subcommands: tuple[str, ...] | None = None
    """Permitted first plain words. None: anything."""
    needs_subcommand: bool = False
    """Without any plain word it does more than with one of `allowed_subcommands`."""
    max_arguments: int | None = None
    """So many plain words at most: with a further one, what only asked begins to change something."""
    asking: tuple[str, ...] = ()
    """Options, or first plain words, with which it only asks, whatever other words it has."""


class ProgramRules(FrozenModel):
    """A program with subcommands, of which only the listed ones may be started."""

    program: NonEmpty
    """Its name. It is known by its file too, under whatever name it is started."""
    options_with_value: tuple[str, ...] = ()
    """Options before the subcommand whose value is the next word."""
    refused_options: tuple[str, ...] = ()
    """Options before the subcommand that may not be given."""
    settings: tuple[str, ...] = ()
    """Keys, lower-case, that `-c KEY=VALUE` before the subcommand may set."""
    subcommands: dict[str, SubcommandRules] = Field(default_factory=dict)
    instead: str = ""
    """The agent's alternative, in a few words."""


class ExecRules(FrozenModel):
    """Programs that may be started inside a confined tree. It teaches and records; the mounts are the boundary."""

    refused: dict[str, str] = Field(default_factory=dict)
    """Programs by name, each with the reason."""
    programs: tuple[ProgramRules, ...] = ()
    repositories: tuple[str, ...] = ()
    """Folders that the rules for git are about: a worktree and its git directories. On scratch repositories anywhere
    else git is free, but for addresses of other machines. Empty: the rules hold everywhere."""


class Confinement(FrozenModel):
    """The reach of a process tree. Launchers refuse what they cannot enforce.

    A confined tree sees the system's programs and libraries read-only, an empty private `/tmp`, and what is
    mounted here; nothing else of the machine is there, and no process but its own.
    """

    kind: Literal["none", "kernel"] = "none"
    mounts: tuple[Mount, ...] = ()
    """In order: a later one covers what an earlier one shows."""
    programs: tuple[str, ...] = ()
    """Files of programs that are shown with what belongs to them, beside the one that is started."""
    pinned: tuple[str, ...] = ()
    """Paths inside writable mounts that stay as they are, together with the names of all folders above them."""
    home: str = ""
    """A writable mount that is HOME unless the spawn names another. Empty: a fresh one for each start."""
    unmounted_env: dict[str, str] = Field(default_factory=dict)
    """Variables for machines on which nothing can be mounted: they name sources in place of targets."""
    network: NetworkPolicy = "open"
    hosts: tuple[str, ...] = ()
    """Hosts that may be reached, as `name`, `*.name` or `name:port`; 443 and 80 where no port is named."""
    forwarded_ports: tuple[int, ...] = ()
    """Ports on 127.0.0.1 outside that answer on the same port inside."""
    execs: ExecRules | None = None


class FolderConfinement(FrozenModel):
    """The kernel's confinement of commands in a folder, as far as judging them depends on it."""

    network: NetworkPolicy
    hosts: tuple[str, ...] = ()
    disposable: bool = False
    """All that they can write lies in a workspace that can be rolled back."""
    holds_zones: bool = False
    """Places with plain names that the policy's zones close can only be read."""
    undoable: bool = True
    """True if what they remove can be brought back."""

    @property
    def is_offline(self) -> bool:
        """Tell whether a command reaches nobody: one that Podium performs has no model to talk to."""
        return self.network in ("none", "model-only") and not self.hosts


class ProcessSpec(FrozenModel):
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
    farewell_seconds: float = 0.0
    """Time to tidy up when Podium is killed. Zero: it is killed at once, as befits an agent."""
    leaves_server: str = ""
    """Name of a server that it puts into the background, which goes on when it has ended with 0, also after Podium's own end; it is
    ended by this name. Empty: nothing outlives it."""


class ProcessExit(FrozenModel):
    """The end of a process tree. When you hold this, none of its processes is alive but a server it was to leave."""

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
    refused_execs: tuple[str, ...] = ()
    """Programs that the rules kept a confined tree from starting, with the reason; the first few."""
    refused_hosts: tuple[str, ...] = ()
    """Hosts that a confined tree wanted to reach and may not; the first few."""
    breaches: tuple[str, ...] = ()
    """Limits that it went beyond, in words: `stopped: more than 1024 processes`."""
