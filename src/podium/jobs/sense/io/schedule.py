"""Schedule of a root's ticks, the machine they run on, and the protocol of schedulers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator, Field

from podium.core.errors import NotPossibleNow, PodiumError, ToolMissing
from podium.core.model import FrozenModel
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.work import Mode
from podium.platform import make_private_folder
from podium.ports import Launcher

SchedulerName = Literal["launchd", "systemd", "cron"]

LABEL = "com.02luka.gmx-clc-orchestrator"
SHIM = "g/tools/gmx_clc_orchestrator.zsh"
STDOUT_LOG = "logs/gmx_clc_orchestrator.stdout.log"
STDERR_LOG = "logs/gmx_clc_orchestrator.stderr.log"
SCHEDULED = "PODIUM_SENSE_SCHEDULED"
"""Set for a tick that no person started: it plans only when something changed."""
HOME = "PODIUM_HOME"
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")


def _writable_down(path: str) -> str:
    """A path that every scheduler's file can hold: absolute, text, one line."""
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not absolute")
    odd = sorted({char for char in path if unicodedata.category(char) in ("Cc", "Cs")})
    if odd:
        raise ValueError(
            f"{path!r} contains {odd[0]!r}, which schedulers do not support; rename the folder"
        )
    return path


PlainPath = Annotated[str, AfterValidator(_writable_down)]


class TickSchedule(FrozenModel):
    """A tick of one root, again and again."""

    root: PlainPath
    program: PlainPath
    """The `podium` that was installed from."""
    label: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] = LABEL
    every_seconds: Annotated[int, Field(ge=10, le=604_800)] = 300
    mode: Mode = "sensing"
    folders: tuple[PlainPath, ...] = ()
    """More folders on PATH, such as the planner's."""
    home: PlainPath | None = None
    """`PODIUM_HOME` of whoever installs: what they trusted and set is found there."""

    @property
    def name(self) -> str:
        """Tells this root's units and lines from those of another."""
        stem = re.sub(r"[^A-Za-z0-9]+", "-", Path(self.root).name).strip("-").lower()[:40] or "root"
        return f"podium-sense-{stem}-{hashlib.sha256(self.root.encode()).hexdigest()[:8]}"

    @property
    def path(self) -> str:
        """PATH of a tick. A folder with a colon in its name cannot stand there."""
        own = (f"{self.root}/.venv/bin", *SYSTEM_PATH, str(Path(self.program).parent))
        return ":".join(
            folder for folder in dict.fromkeys((*own, *self.folders)) if ":" not in folder
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": self.path,
            "PYTHONPATH": self.root,
            "GMX_ORCH_MODE": self.mode,
            SCHEDULED: "1",
            **({HOME: self.home} if self.home else {}),
        }


class InstallChange(FrozenModel):
    """Result of installing or uninstalling."""

    scheduler: SchedulerName
    done: bool = True
    """False: a program refused, and the notes say what a person can do."""
    loaded: bool = False
    """The scheduler itself knows of it now."""
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    """Copies of files that were there before and not written by Podium."""
    notes: tuple[str, ...] = ()
    by_hand: str = ""
    """Command to type, or text to put into a file, where Podium could not do it."""


class SchedulerStatus(FrozenModel):
    """Status of one scheduler."""

    scheduler: SchedulerName
    installed: bool = False
    loaded: bool | None = None
    """None: that cannot be known here."""
    last_exit: int | None = None
    where: str = ""
    why: str = ""


@dataclass(frozen=True)
class Machine:
    """Machine and user, as schedulers need them."""

    launcher: Launcher
    home: Path
    config_home: Path
    platform: str
    """As `sys.platform` says it."""
    uid: int

    async def ask(self, *argv: str, stdin: bytes = b"") -> CommandOutput:
        """Run one of the scheduler's own programs for a short while."""
        spawn = ProcessSpec(
            argv=argv,
            cwd="/",
            env={"LC_ALL": "C"},
            inherit_env=("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
            stdin=stdin,
            limits=ProcessLimits(seconds=30.0, output_bytes=4_000_000),
        )
        try:
            return CommandOutput(await self.launcher.run(spawn))
        except ToolMissing:
            return CommandOutput(None, f"{argv[0]} is not installed")
        except PodiumError as error:
            return CommandOutput(None, str(error))


class CommandOutput:
    """Output of a program."""

    def __init__(self, ended: ProcessExit | None, problem: str = "") -> None:
        self.worked = ended is not None and ended.exit_code == 0
        self.whole = ended is not None and not ended.stdout_dropped_bytes
        self.output = ended.stdout if ended else b""
        self.complaint = problem or (_complaint(ended) if ended else "")

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")


def _complaint(ended: ProcessExit) -> str:
    if ended.timed_out:
        return "it did not respond in time"
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return " ".join(lines[-1].split())[:300] if lines else f"exit code {ended.exit_code}"


class Scheduler(Protocol):
    """One way of having ticks started."""

    name: SchedulerName

    def preview(self, schedule: TickSchedule) -> dict[str, str]:
        """File, or what stands for one → text. Writes nothing.

        Raises `BadInput` for what this scheduler cannot be told.
        """
        ...

    async def install(self, schedule: TickSchedule) -> InstallChange:
        """Put it in force as far as this machine can. Again: the same, brought up to date."""
        ...

    async def uninstall(self, schedule: TickSchedule) -> InstallChange:
        """Take back what `install` wrote, and nothing else. Where nothing is, nothing happens."""
        ...

    async def status(self, schedule: TickSchedule) -> SchedulerStatus: ...


def made_folder(folder: Path) -> Path:
    """A folder of the user's own home, made when it is not there. There links are the user's choice."""
    try:
        make_private_folder(folder)
    except OSError as error:
        raise NotPossibleNow(f"cannot create {str(folder)!r}: {error.strerror}") from None
    return folder
