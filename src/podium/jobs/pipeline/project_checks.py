"""Checks outside a run: one tried once by `podium init`, all of them on the checked-out commit."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from podium.core.errors import NotPossibleNow, PodiumError
from podium.core.model import FrozenModel
from podium.jobs.pipeline import Check, CheckResult
from podium.jobs.pipeline.check_detection import probe_in
from podium.jobs.pipeline.check_programs import ADVICE, cannot_test, missing_programs, remedy_for
from podium.jobs.pipeline.composition import check_runner, named_checks
from podium.jobs.pipeline.spec_files import pipeline_spec
from podium.platform.folder_tree import clear_away
from podium.render.text import safe_line

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.ports import Workspace


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


class CheckTrial(FrozenModel):
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
        run_check = check_runner(podium)
        if missing := await missing_programs([check], probe_in(workspace, run_check)):
            return _cannot(check, missing[0].removeprefix(f"`{check.command}`: "))
        return _judged(await run_check(workspace, check, MAX_SECONDS))
    except PodiumError as error:
        return _cannot(check, str(error))
    finally:
        # What the check left behind is nobody's work: without this it would be kept as a snapshot.
        await asyncio.to_thread(clear_away, Path(workspace.record.path))
        await podium.workspaces.remove(workspace.record.id)
        await podium.workspaces.forget(workspace.record.id)


async def try_project_checks(podium: Podium) -> tuple[CheckTrial, ...]:
    """Try what podium.yaml names, or what is found where it names nothing.

    Raises `NotPossibleNow` where nothing is found that can be run.
    """
    from podium.app.project_survey import detect_checks
    from podium.git.repository import look_at

    checks = named_checks(podium)
    if checks is None:
        look = await look_at(podium.repository_git, str(podium.folders.project))
        detection = await detect_checks(podium, look)
        checks = detection.checks[:1]
        if not checks:
            raise NotPossibleNow(
                cannot_test(detection.not_installed, remedy_for(detection, podium.folders.project))
                if detection.not_installed
                else f"no checks were found; name them under `checks:` in podium.yaml; {ADVICE}"
            )
    return tuple([await try_check(podium, check) for check in checks])


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


class ChecksReport(FrozenModel):
    """The results, and what they are about."""

    commit: str
    results: tuple[CheckResult, ...]
    not_tested: tuple[str, ...] = ()
    """Tracked files of the checkout that are not as committed: the checks ran without these changes."""

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)


async def run_project_checks(podium: Podium, run_id: str) -> ChecksReport:
    """Run the checks, confined as those of the pipeline are. The workspace is removed afterwards.

    Raises `BadInput` where there is no repository, `NotPossibleNow` where there is nothing to run.
    """
    from podium.git.repository import look_at
    from podium.jobs.pipeline.check_detection import detect_in

    named = named_checks(podium)
    look = await look_at(podium.repository_git, str(podium.folders.project))
    workspace = await _workspace(podium, run_id, look.head)
    run_check, seconds = check_runner(podium), pipeline_spec(podium.configuration).check_seconds
    try:
        checks = (await detect_in(workspace, run_check)).checks if named is None else named
        if not checks:
            raise NotPossibleNow(
                "no checks were found; name them under `checks:` in podium.yaml, such as [pytest -q]"
            )
        results = [await run_check(workspace, check, seconds) for check in checks]
        await workspace.reset(look.head, "what the checks left")
    finally:
        await podium.workspaces.remove(workspace.record.id)
    return ChecksReport(commit=look.head, results=tuple(results), not_tested=look.changed)


async def _workspace(podium: Podium, run_id: str, commit: str) -> Workspace:
    """The one that an earlier attempt of the same run made, else a new one."""
    for record in podium.workspaces.known():
        if record.run_id == run_id:
            return await podium.workspaces.open(record.id)
    wish = podium.workspace_wish(f"checks-{run_id[-8:]}", base=commit, run_id=run_id)
    return await podium.workspaces.create(wish)
