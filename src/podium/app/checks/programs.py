"""Programs of checks: whether they can be started where checks run, and what a person does when they cannot."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from podium.app.checks.check import Check, Detection
from podium.app.project_venv import VENV_NAMES, is_venv

Run = Callable[[str], Awaitable[str]]
"""Runs a shell line where checks run, and gives what it wrote."""

ADVICE = "`podium help add-a-check`"
_SYSTEM_PATH = "/usr/bin:/bin"
"""Folders that every workspace sees: their programs need no probe."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*")
_PLAIN = re.compile(r"[\w./@+-]+")
_MISSING = re.compile(r"^podium-missing ([0-9]+)$", re.MULTILINE)


async def missing_programs(checks: Sequence[Check], run: Run) -> tuple[str, ...]:
    """Name the checks whose program cannot be started, each with the reason.

    A file of the workspace may still be written by whoever does the work, and is not missed.
    """
    programs = [
        (check, program)
        for check in checks
        for program in _program(check.command)
        if not (_may_be_written(program) or _is_in_system(program))
    ]
    if not programs:
        return ()
    lines = (
        f"command -v {shlex.quote(program)} >/dev/null 2>&1 || echo podium-missing {number}"
        for number, (_, program) in enumerate(programs)
    )
    output = await run("\n".join([*lines, "true"]))
    missing = [programs[int(number)] for number in _MISSING.findall(output)]
    return tuple(f"`{check.command}`: {_reason(program)}" for check, program in missing)


def _program(command: str) -> Iterator[str]:
    """The first word that is not an assignment, unless only a shell understands it."""
    try:
        tokens = shlex.split(command)
    except ValueError:
        return
    for token in tokens:
        if not _ASSIGNMENT.fullmatch(token):
            if _PLAIN.fullmatch(token):
                yield token
            return


def _is_in_system(program: str) -> bool:
    # A relative path would be looked up from where Podium was started.
    return "/" not in program and shutil.which(program, path=_SYSTEM_PATH) is not None


def _may_be_written(program: str) -> bool:
    return "/" in program and not program.startswith("/") and _top(program) not in VENV_NAMES


def _top(program: str) -> str:
    return program.removeprefix("./").split("/")[0]


def _reason(program: str) -> str:
    if "/" not in program:
        return f"{program} is not installed"
    name = _top(program)
    if name in VENV_NAMES:
        short = os.path.basename(program)  # noqa: PTH119 — a name on PATH, not a path
        return f"there is no {name} in a workspace; write `{short}`, which is that of your checkout's {name}"
    return f"{program} is not visible in a workspace"


def cannot_test(missing: Sequence[str], remedy: str) -> str:
    """One sentence about tests that nothing can run, and the ways on."""
    first = f"Run `{remedy}`, or name" if remedy else "Install it, or name"
    return (
        f"the tests cannot be run: {'; '.join(missing)}. {first} another command under `checks:` in podium.yaml "
        f"(`checks: []`: without tests); see {ADVICE}"
    )


def remedy_for(detection: Detection, checkout: Path) -> str:
    """The command that installs what the first check lacks. Empty: that depends on the system."""
    if not detection.module:
        return ""
    for name in VENV_NAMES:
        if is_venv(checkout / name):
            return f"{name}/bin/python -m pip install {detection.module}"
    return f"python3 -m venv .venv && .venv/bin/pip install {detection.module}"
