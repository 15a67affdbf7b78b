"""The base before any agent: fetched, looked through for missing parts, and checked, so that red before is told from red after."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from podium.app.checks import ADVICE, SET_UP, CheckResult, why_not_runnable
from podium.core.errors import NotPossibleNow, WorkspaceTampered
from podium.core.events import NoteTaken
from podium.jobs.pipeline.agent_text import one_line
from podium.jobs.pipeline.base_report import ended, missing_parts_of
from podium.jobs.pipeline.events import BaseChecked
from podium.jobs.pipeline.stage import with_remote_base
from podium.jobs.pipeline.state import DEPENDENCIES, BaseReport, StageContext, ask_a_person
from podium.ports import StepContext, Workspace

_MANIFESTS = (
    "pyproject.toml", "requirements.txt", "requirements-dev.txt", "requirements/dev.txt", "dev-requirements.txt",
    "setup.cfg", "setup.py", "Pipfile", "tox.ini", "package.json",
)  # fmt: skip
_SUBMODULE = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)
_LFS_POINTER = "version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 200
_MAX_PARTS = 50
_MAX_FILES = 200
_MAX_REASON = 200


async def check_base(context: StageContext) -> StageContext:
    """Look at the base once, in the new workspace, which stands there. A person is asked about checks that cannot run."""
    if context.state.job.spec.baseline == "skip":
        return context
    report = await _looked_at(context, 0)
    if report.not_runnable:
        context = await ask_a_person(context, "baseline", _question(report))
        report = await _looked_at(context, 1)
    on_base = {(report.commit, result.command): result for result in report.results}
    state = replace(context.state, before=report, on_base=on_base)
    return with_remote_base(context.with_state(state), report.remote)


async def _looked_at(context: StageContext, attempt: int) -> BaseReport:
    async def work(step: StepContext) -> BaseReport:
        return await _base_report(context)

    report: BaseReport = await context.flow.step(
        "baseline", work, index=attempt, returns=BaseReport
    )
    _note(context, report)
    return report


async def _base_report(context: StageContext) -> BaseReport:
    """Raises `NotPossibleNow` for a red base that the settings do not allow."""
    state, workspace = context.state, context.state.workspace
    spec, commit = state.job.spec, state.base
    await workspace.reset(commit, "before running the checks on the base")
    remote = await context.deps.forge.fetch_base(state.job.repository, state.job.base)
    is_behind = bool(remote.commit) and not await workspace.holds(remote.commit)
    pointers = await _lfs_pointers(workspace)
    submodules = await _empty_submodules(workspace)
    results = [
        await context.deps.run_check(workspace, check, spec.check_seconds)
        for check in context.checks
    ]
    if results:
        await workspace.reset(commit, "changes left by the checks on the base")
        await workspace.clear_ignored(context.baseline.ignored, DEPENDENCIES)
    report = BaseReport(
        commit=commit,
        results=tuple(results),
        remote=remote,
        is_behind=is_behind,
        empty_submodules=submodules,
        lfs_pointers=pointers,
        not_runnable=tuple(await _not_runnable(workspace, results, spec.check_seconds)),
    )
    if spec.red_base == "abort" and report.red:
        listed = ", ".join(map(ended, report.red))
        raise NotPossibleNow(
            f"{state.job.base} is red before any work: {listed}. Make it green first, or set `flows: pipeline: "
            "red_base: ask` in podium.yaml"
        )
    return report


async def _not_runnable(
    workspace: Workspace, results: Sequence[CheckResult], seconds: float
) -> list[str]:
    red = [result for result in results if not result.passed]
    manifests = [await workspace.read(path) or "" for path in _MANIFESTS] if red else []
    lines = []
    for result in red:
        why = why_not_runnable(result, "\n".join(manifests))
        if result.timed_out:
            why = f"not finished after {seconds:g} s; change it under `checks:`, or raise `flows: pipeline: check_seconds` for a new run"
        elif why:
            why = f"{one_line(why, _MAX_REASON)}; {SET_UP}"
        lines += [f"`{result.command}`: {why}"] if why else []
    return lines


async def _lfs_pointers(workspace: Workspace) -> tuple[str, ...]:
    pointers = []
    for path in (await workspace.tracked(":(attr:filter=lfs)"))[:_MAX_FILES]:
        with suppress(WorkspaceTampered):
            text = await workspace.read(path, _POINTER_BYTES) or ""
            pointers += [path] if text.startswith(_LFS_POINTER) else []
    return tuple(pointers[:_MAX_PARTS])


async def _empty_submodules(workspace: Workspace) -> tuple[str, ...]:
    paths = _SUBMODULE.findall(await workspace.read(".gitmodules") or "")[:_MAX_PARTS]
    return tuple(await asyncio.to_thread(_empty, Path(workspace.record.path), paths))


def _empty(worktree: Path, paths: Sequence[str]) -> list[str]:
    """Paths of folders that are empty or not there. A path that leads out of the worktree is nobody's submodule."""
    empty = []
    for path in paths:
        parts = path.split("/")
        if path.startswith("/") or ".." in parts or "\0" in path:
            continue
        folder = worktree / path
        if not folder.resolve().is_relative_to(worktree.resolve()):
            continue
        if not folder.is_dir() or not any(folder.iterdir()):
            empty.append(path)
    return empty


def _question(report: BaseReport) -> str:
    listed = "\n".join(f"- {line}" for line in report.not_runnable)
    return (
        f"checks cannot be run on the base, and no agent was started:\n{listed}\nSee {ADVICE}. If you resume, they are run "
        "once more, and the run goes on however they end"
    )


def _note(context: StageContext, report: BaseReport) -> None:
    results = tuple(result.model_dump(mode="json") for result in report.results)
    context.flow.note(
        BaseChecked(
            commit=report.commit,
            results=results,
            passed=not report.red,
            empty_submodules=report.empty_submodules,
            lfs_pointers=report.lfs_pointers,
        )
    )
    for text in missing_parts_of(report):
        context.flow.note(NoteTaken(text=text))
    if report.is_behind:
        context.flow.note(
            NoteTaken(
                text=f"{report.remote.name} has commits that {context.state.job.base} does not have; they are merged after the "
                "work. To start from them, update your branch and start a new run."
            )
        )
