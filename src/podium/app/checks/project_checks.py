"""Checks of the project outside of a task: found, tried once by `podium init`, or all run on the checked-out commit."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from podium.app.checks.check import (
    ADVICE,
    CANNOT_START,
    SET_UP,
    Check,
    CheckResult,
    CheckRunner,
    Detection,
    cannot_test,
    missing_programs,
    named_checks,
    remedy_for,
)
from podium.app.checks.detection import detect_all, detect_in, probe_in
from podium.config.configuration import Configuration
from podium.core.errors import NotPossibleNow, PodiumError
from podium.core.model import FrozenModel
from podium.git.repository import look_at
from podium.git.worktree_files import read_text
from podium.platform.folder_tree import clear_away
from podium.render.text import safe_line

if TYPE_CHECKING:
    from podium.core.workspaces import CheckoutStatus, WorkspaceSpec
    from podium.git.git_command import Git
    from podium.ports import Workspace, Workspaces


TRIAL_SECONDS = 300.0
_PROBE_SECONDS = 60.0
_FILE_BYTES = 1_000_000
_LISTING_BYTES = 16_000_000
_MAX_REASON_CHARACTERS = 160
_MISSING = re.compile(
    r"No module named|Cannot find (?:module|package)|command not found|: not found$|Could not resolve|"
    r"[Nn]ame resolution|ENOTFOUND|EAI_AGAIN|No rule to make target|no such command",
    re.MULTILINE,
)
"""Signs in the output that a package, a program or the network is missing."""


class CheckTrial(FrozenModel):
    """Result of a check on the committed state, before any work."""

    command: str
    state: Literal["green", "red", "cannot_run"]
    summary: str
    """One line for people."""


class ChecksReport(FrozenModel):
    """The results, and what they are about."""

    commit: str
    results: tuple[CheckResult, ...]
    not_tested: tuple[str, ...] = ()
    """Tracked files of the checkout that are not as committed: the checks ran without these changes."""

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)


@dataclass(frozen=True)
class ProjectChecks:
    """Finds, tries and runs the checks of one project."""

    configuration: Configuration
    workspaces: Workspaces
    new_workspace: Callable[..., WorkspaceSpec]
    """A workspace as the settings want it, by task, `base` and `run_id`."""
    git: Git
    runner: CheckRunner

    @property
    def folder(self) -> Path:
        return self.configuration.folders.project

    async def detect(self, look: CheckoutStatus | None) -> Detection:
        """Find the project's checks. Look through the tracked files; where nothing is committed yet, through all that git does not ignore."""
        top = Path(look.checkout) if look else self.folder
        everything = () if look else ("--cached", "--others", "--exclude-standard")
        listing = await self.git.run(
            "-C", str(top), "ls-files", "-z", *everything,
            output_bytes=_LISTING_BYTES, cut=True, accept=(0, 128),
        )  # fmt: skip
        # The last one may be cut, and is empty otherwise.
        paths = listing.stdout.decode(errors="surrogateescape").split("\0")[:-1]

        async def read(path: str) -> str | None:
            return await asyncio.to_thread(read_text, top, path, _FILE_BYTES)

        return await detect_all(read, paths, self.probe)

    async def probe(self, line: str) -> str:
        """Run a line that only looks, where checks run, and return its output.

        In an empty folder: what git does not carry, such as node_modules, is not in a run's workspace either.
        """
        with tempfile.TemporaryDirectory(prefix="podium-init-") as folder:
            check = Check(name="installed tools", command=line)
            return (await self.runner.run_in(folder, check, _PROBE_SECONDS)).tail

    async def try_check(self, check: Check) -> CheckTrial:
        """Run the check once, as a run would, and remove every trace of that."""
        if self.configuration.sandbox.kind == "none":
            return _cannot(check, "not started, because there is no sandbox (`sandbox: none`)")
        try:
            workspace = await self.workspaces.create(self.new_workspace("try-check"))
        except PodiumError as error:
            return _cannot(check, str(error))
        try:
            if missing := await missing_programs([check], probe_in(workspace, self.runner.run)):
                return _cannot(check, missing[0].removeprefix(f"`{check.command}`: "))
            return _judged(await self.runner.run(workspace, check, TRIAL_SECONDS))
        except PodiumError as error:
            return _cannot(check, str(error))
        finally:
            # What the check left behind is nobody's work: without this it would be kept as a snapshot.
            await asyncio.to_thread(clear_away, Path(workspace.record.path))
            await self.workspaces.remove(workspace.record.id)
            await self.workspaces.forget(workspace.record.id)

    async def try_all(self) -> tuple[CheckTrial, ...]:
        """Try what podium.yaml names, or what is found where it names nothing.

        Raises `NotPossibleNow` where nothing is found that can be run.
        """
        checks = named_checks(self.configuration)
        if checks is None:
            detection = await self.detect(await look_at(self.git, str(self.folder)))
            checks = detection.checks[:1]
            if not checks:
                raise NotPossibleNow(
                    cannot_test(detection.not_installed, remedy_for(detection, self.folder))
                    if detection.not_installed
                    else f"no checks were found; name them under `checks:` in podium.yaml; see {ADVICE}"
                )
        return tuple([await self.try_check(check) for check in checks])

    async def run_all(self, run_id: str, seconds: float) -> ChecksReport:
        """Run the checks on the checked-out commit, each within so many seconds, and remove their workspace afterwards.

        Raises `BadInput` where there is no repository, `NotPossibleNow` where there is nothing to run.
        """
        named = named_checks(self.configuration)
        look = await look_at(self.git, str(self.folder))
        workspace = await self._workspace(run_id, look.head)
        try:
            checks = named
            if checks is None:
                checks = (await detect_in(workspace, self.runner.run)).checks
            if not checks:
                raise NotPossibleNow(
                    "no checks were found; name them under `checks:` in podium.yaml, such as [pytest -q]"
                )
            results = [await self.runner.run(workspace, check, seconds) for check in checks]
            await workspace.reset(look.head, "changes by checks")
        finally:
            await self.workspaces.remove(workspace.record.id)
        return ChecksReport(commit=look.head, results=tuple(results), not_tested=look.changed)

    async def _workspace(self, run_id: str, commit: str) -> Workspace:
        """The one that an earlier attempt of the same run made, else a new one."""
        for record in self.workspaces.existing():
            if record.run_id == run_id:
                return await self.workspaces.open(record.id)
        spec = self.new_workspace(f"checks-{run_id[-8:]}", base=commit, run_id=run_id)
        return await self.workspaces.create(spec)


def _judged(result: CheckResult) -> CheckTrial:
    check = Check(name=result.name, command=result.command)
    if result.passed:
        return _trial(check, "green", f"green in {result.seconds:.1f} s")
    if result.timed_out:
        return _cannot(check, f"not finished after {TRIAL_SECONDS:.0f} s")
    if result.ran_no_tests:
        return _cannot(check, "it ran 0 tests, which counts as red")
    lines = [line for line in result.tail.splitlines() if line.strip()] or ["no output"]
    missing = [line for line in lines if _MISSING.search(line)]
    if missing or result.exit_code in CANNOT_START:
        return _cannot(check, f"{(missing or lines)[-1].strip()}; {SET_UP}")
    ending = "killed" if result.exit_code is None else f"exit {result.exit_code}"
    return _trial(check, "red", f"red before any work ({ending}): {lines[-1].strip()}")


def _cannot(check: Check, reason: str) -> CheckTrial:
    return _trial(check, "cannot_run", f"cannot run: {reason}")


def _trial(check: Check, state: Literal["green", "red", "cannot_run"], summary: str) -> CheckTrial:
    return CheckTrial(
        command=check.command, state=state, summary=safe_line(summary, _MAX_REASON_CHARACTERS)
    )
