"""A tmux server of its own for a pair of programs, which outlives Podium, and the tmux that it needs."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from podium.agents.tui.control import Control, LineLost, ServerGone, TmuxRefused, quoted
from podium.core.errors import NotPossibleNow, TimedOut, ToolMissing
from podium.core.model import FrozenModel, NonEmpty
from podium.core.processes import ProcessLimits, ProcessSpec
from podium.platform.private_sockets import make_private, refuse_long
from podium.ports import Launcher

OLDEST = (3, 2)
"""The first that can keep a client from getting every pane's output, and give each pane variables of its own."""

_INSTALL = "install tmux 3.2 or newer (Debian, Ubuntu: sudo apt-get install tmux; macOS: brew install tmux), or run without terminals: `podium duet up --transport headless`"
_SECONDS = 30.0


async def require_tmux(launcher: Launcher, program: str = "tmux") -> str:
    """The version of tmux as it names itself. Raises `ToolMissing` when there is none, or only one too old."""
    spawn = ProcessSpec(argv=(program, "-V"), cwd="/", limits=ProcessLimits(seconds=_SECONDS))
    try:
        ended = await launcher.run(spawn)
    except ToolMissing as error:
        raise ToolMissing(f"program {program!r} not found; {_INSTALL}") from error
    version = ended.stdout.decode(errors="replace").strip()
    if ended.exit_code != 0 or not is_new_enough(version):
        raise ToolMissing(f"{program!r} has version {version or 'unknown'!r}; {_INSTALL}")
    return version


def is_new_enough(version: str) -> bool:
    """Return whether this version will do. Builds without a number, as `tmux master`, are newer than any."""
    match = re.search(r"(\d+)\.(\d+)", version)
    if match is None:
        return bool(re.fullmatch(r"tmux (master|openbsd.*)", version))
    return (int(match[1]), int(match[2])) >= OLDEST


_START_SECONDS = 30.0
_ATTEMPTS = 20
_PAUSE_SECONDS = 0.05

EndLeft = Callable[[str], int]
"""Ends the server that a spawn left under a name, with all it started. Blocks meanwhile."""


class TerminalSettings(FrozenModel):
    """Location of a pair's tmux server, and the size of its panes."""

    socket: Path
    """Its own; a person attaches by `tmux -S SOCKET attach`."""
    folder: Path
    """Private and for this alone: what panes write, and messages handed over as files. Removed with the server."""
    session: str = Field(default="main", pattern=r"^[A-Za-z0-9_-]+$")
    columns: int = Field(default=200, ge=20, le=4000)
    rows: int = Field(default=50, ge=5, le=4000)
    """Of each pane, whatever the terminal of a person who attaches."""
    history_lines: int = Field(default=50_000, ge=0, le=1_000_000)
    program: NonEmpty = "tmux"


@dataclass(frozen=True)
class ServerIdentity:
    """One life of a server. Pane ids and the ledger's numbers mean nothing in another one."""

    pid: int
    started: int
    """Seconds since 1970."""


class TmuxServer:
    """Brings a server up, connects to it, and ends it without a trace."""

    def __init__(self, launcher: Launcher, settings: TerminalSettings, end_left: EndLeft) -> None:
        self.settings = settings
        self._launcher = launcher
        self._end_left = end_left
        # With `-u`: where the person's language says nothing of UTF-8, tmux would spoil tabs and all that is not ASCII.
        self._tmux = (
            settings.program,
            "-u",
            "-S",
            str(settings.socket.absolute()),
            "-f",
            os.devnull,
        )
        attach = ("attach-session", "-t", f"={settings.session}", "-f", "no-output,ignore-size")
        self.control = Control(launcher, (*self._tmux, "-C", *attach), "/")

    @property
    def name(self) -> str:
        """By which the launcher knows it, in whichever Podium."""
        return f"tmux {self.settings.socket.absolute()}"

    async def come_up(self) -> ServerIdentity:
        """Start the server unless it runs, and connect. Harmless when called again, also by another Podium.

        Raises `ToolMissing` without a tmux that will do, `BadInput` for a socket that cannot be made or others could have
        made, `NotPossibleNow` when somebody else's server answers there, which is left alone.
        """
        await require_tmux(self._launcher, self.settings.program)
        refuse_long(self.settings.socket)
        make_private(self.settings.socket.parent)
        make_private(self.settings.folder)
        await self._start()
        await self.control.run(" ; ".join(_OPTIONS))
        return await self.identity()

    async def identity(self) -> ServerIdentity:
        """Return which life of the server this is. Raises `ServerGone` when there is none."""
        (line,) = await self.control.ask("display-message -p '#{pid} #{start_time}'")
        pid, started = line.split()
        return ServerIdentity(int(pid), int(started))

    async def close(self) -> None:
        """Let go of the server. It and its programs go on."""
        await self.control.close()

    async def departing(self) -> None:
        """End the server and every process it started, and remove what its panes wrote. Harmless when there is none.

        Raises `NotPossibleNow` for a server that is not Podium's.
        """
        # Where there is none, tmux itself may be missing.
        if self.settings.socket.exists():
            await self._end_by_command()
        await self.control.close()
        await asyncio.to_thread(self._end_left, self.name)
        # Whoever named it may have named a file of his own.
        if self.settings.socket.is_socket():
            self.settings.socket.unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, self.settings.folder, ignore_errors=True)

    async def _end_by_command(self) -> None:
        # Then it is gone already, or does not listen and is ended by whoever called.
        with suppress(ServerGone, LineLost, TmuxRefused, TimedOut):
            if await self.control.ask(f"show-options -gqv {_OURS}") != ["1"]:
                await self.control.close()
                raise self._foreign()
            await self.control.run("kill-server")

    async def _start(self) -> None:
        """A server that is just ending refuses newcomers for a moment: 3 times in 20 on tmux 3.3a."""
        for _ in range(_ATTEMPTS):
            ended = await self._launcher.run(self._new_session())
            message = ended.stderr.decode(errors="replace").strip()
            if ended.exit_code == 0 and not ended.stdout.strip():
                raise self._foreign()
            if ended.exit_code == 0 or message.startswith("duplicate session"):
                return
            await asyncio.sleep(_PAUSE_SECONDS)
        raise NotPossibleNow(
            f"tmux did not start at {str(self.settings.socket)!r}: {message or 'no reason given'}"
        )

    def _new_session(self) -> ProcessSpec:
        settings = self.settings
        commands = (
            f"set -g {_OURS} 1",
            # These hold only for what comes after them, so they come first. Without the latter tmux would keep the last
            # thousand commands, messages and variables of programs among them.
            f"set -g history-limit {settings.history_lines}",
            "set -s message-limit 0",
            f"new-session -d -s {settings.session} -x {settings.columns} -y {settings.rows} -c / {PLACEHOLDER}",
            f"set -p -t ={settings.session}: {FREE} 1",
        )
        begin = ("start-server", ";", "if", "-F", _OURS_OR_NEW, " ; ".join(commands), ";")
        return ProcessSpec(
            argv=(*self._tmux, *begin, "show-options", "-gqv", _OURS),
            cwd="/",
            limits=ProcessLimits(seconds=_START_SECONDS),
            leaves_server=self.name,
        )

    def _foreign(self) -> NotPossibleNow:
        return NotPossibleNow(
            f"a tmux server that Podium did not start runs at {str(self.settings.socket)!r}; "
            "end it yourself, or choose another socket"
        )


PLACEHOLDER = "sleep 2147483647"
"""The command of a pane until it is given its program."""
FREE = "@podium_free"
"""The mark of the pane that the server begins with. No other pane without a name is Podium's."""

_OURS = "@podium"
_OURS_OR_NEW = f"#{{||:#{{{_OURS}}},#{{==:#{{S:x}},}}}}"
"""True where the server has our mark, or no session at all."""

_OPTIONS = (
    # A program that ended can still be read, and the server stays.
    "set -gw remain-on-exit on",
    f"set -gwq remain-on-exit-format {quoted('')}",
    "set -g status off",
    "set -g default-shell /bin/sh",
    "set -g default-terminal screen-256color",
    # Nothing of whoever attaches reaches the programs, and theirs not his clipboard.
    f"set -g update-environment {quoted('')}",
    "set -s set-clipboard off",
    "set -gw allow-rename off",
    "set -gw automatic-rename off",
)
