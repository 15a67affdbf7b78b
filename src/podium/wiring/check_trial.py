"""A check tried once in a workspace of its own, before any work depends on it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from podium.domain.errors import PodiumError
from podium.domain.model import Noun
from podium.flows.pipeline import Check, CheckResult
from podium.telling.untrusted import safe_line
from podium.wiring.pipelining import check_runner
from podium.workspaces.git.clearing import clear_away

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

MAX_SECONDS = 300.0
_MAX_REASON_CHARACTERS = 160
_CANNOT_BE_RUN = (126, 127)
"""Exit codes of a shell that could not start a program."""
_MISSING = re.compile(
    r"No module named|Cannot find (?:module|package)|command not found|: not found$|Could not resolve|"
    r"[Nn]ame resolution|ENOTFOUND|EAI_AGAIN|No rule to make target|no such command",
    re.MULTILINE,
)
"""Signs in the output that a package, a program or the network is missing."""
_SET_UP = "set the workspace up with `workspaces: after_create:`, or change `checks:`"


class CheckTrial(Noun):
    """How a check came out on what is committed, without any work."""

    command: str
    state: Literal["green", "red", "cannot_run"]
    summary: str
    """One line for people."""


async def try_check(podium: Podium, check: Check) -> CheckTrial:
    """Run the check once, as a run would, and remove every trace of that."""
    if podium.configuration.sandbox.kind == "none":
        return _cannot(check, "there is no sandbox here (`sandbox: none`), so it was not started")
    try:
        workspace = await podium.workspaces.create(podium.workspace_wish("try-check"))
    except PodiumError as error:
        return _cannot(check, str(error))
    try:
        return _judged(await check_runner(podium)(workspace, check, MAX_SECONDS))
    except PodiumError as error:
        return _cannot(check, str(error))
    finally:
        # What the check left behind is nobody's work: without this it would be kept as a snapshot.
        await asyncio.to_thread(clear_away, Path(workspace.record.path))
        await podium.workspaces.remove(workspace.record.id)
        await podium.workspaces.forget(workspace.record.id)


def _judged(result: CheckResult) -> CheckTrial:
    check = Check(name=result.name, command=result.command)
    if result.passed:
        return _trial(check, "green", f"green in {result.seconds:.1f} s")
    if result.timed_out:
        return _cannot(check, f"not finished after {MAX_SECONDS:.0f} s")
    if result.ran_no_tests:
        return _cannot(check, "it ran 0 tests, which counts as red")
    lines = [line for line in result.tail.splitlines() if line.strip()] or ["no output"]
    missing = [line for line in lines if _MISSING.search(line)]
    if missing or result.exit_code in _CANNOT_BE_RUN:
        return _cannot(check, f"{(missing or lines)[-1].strip()}; {_SET_UP}")
    ending = "killed" if result.exit_code is None else f"exit {result.exit_code}"
    return _trial(check, "red", f"red before any work ({ending}): {lines[-1].strip()}")


def _cannot(check: Check, reason: str) -> CheckTrial:
    return _trial(check, "cannot_run", f"cannot run: {reason}")


def _trial(check: Check, state: Literal["green", "red", "cannot_run"], summary: str) -> CheckTrial:
    return CheckTrial(
        command=check.command, state=state, summary=safe_line(summary, _MAX_REASON_CHARACTERS)
    )
