"""Result of a check, and how a program is tried."""

from __future__ import annotations

import tempfile
from typing import Literal

from podium.core.errors import PodiumError, ToolMissing
from podium.core.model import FrozenModel
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.ports import Launcher

State = Literal["ok", "warn", "fail"]


class CheckFinding(FrozenModel):
    """One line of the doctor. Only `fail` means that Podium cannot work here."""

    name: str
    state: State
    says: str
    mend: str = ""
    """Remedy; empty when all is well."""


def good(name: str, says: str) -> CheckFinding:
    return CheckFinding(name=name, state="ok", says=says)


def weak(name: str, says: str, mend: str) -> CheckFinding:
    """Something is missing that some work needs."""
    return CheckFinding(name=name, state="warn", says=says, mend=mend)


def bad(name: str, says: str, mend: str) -> CheckFinding:
    """Something is missing that all work needs."""
    return CheckFinding(name=name, state="fail", says=says, mend=mend)


class Trial:
    """Result of trying a program."""

    def __init__(self, ended: ProcessExit | None, problem: str = "") -> None:
        self.missing = ended is None
        self.worked = ended is not None and ended.exit_code == 0
        self.exit_code = ended.exit_code if ended else None
        self.output = ended.stdout.decode(errors="replace").strip() if ended else ""
        self.complaint = problem or (_complaint(ended) if ended else "")

    @property
    def first_line(self) -> str:
        return self.output.splitlines()[0] if self.output else ""


async def attempt(
    launcher: Launcher,
    *argv: str,
    cwd: str | None = None,
    seconds: float = 10.0,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
) -> Trial:
    """Run a program for a short while. Never raises for what the program does."""
    spawn = ProcessSpec(
        argv=argv,
        cwd=cwd or tempfile.gettempdir(),
        env=env or {},
        stdin=stdin,
        limits=ProcessLimits(seconds=seconds, output_bytes=20_000),
    )
    try:
        return Trial(await launcher.run(spawn))
    except ToolMissing as missing:
        # What to do about it is said by whoever needs the program.
        return Trial(None, str(missing).partition("; ")[0])
    except PodiumError as error:
        return Trial(None, str(error))


def _complaint(ended: ProcessExit) -> str:
    if ended.timed_out:
        return "did not answer in time"
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {ended.exit_code}"
