"""Integration queue on real branches: order, conflicts, red combinations and what was red before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from podium.app.app import Podium
from podium.app.checks import Check
from podium.core.workspaces import WorkspaceSpec
from podium.jobs.pipeline.composition import _pipeline_deps, pipeline_job
from podium.jobs.pipeline.integration_queue import (
    FinishedBranch,
    Integration,
    RemoteMerge,
    integrate,
    merge_remote_base,
)
from podium.jobs.pipeline.state import Baseline, PipelineState, StageContext
from podium.ports import FlowContext
from tests.integration.pipeline.batch_harness import BatchProject, merges_of

BRANCH = "podium/batch/test"
SUM = "python3 -c 'import glob; assert sum(int(open(f).read()) for f in glob.glob(\"n_*\")) < 5'"


class _Direct:
    """Flow context that does each step at once and records nothing."""

    async def step(self, name: str, work: Any, *, index: int = 0, returns: Any = None) -> Any:
        return await work(SimpleNamespace(run_id="run_test", key=f"{name}#{index}"))

    def note(self, body: object) -> None:
        return


class Queue:
    """A project with finished branches, and an integration branch."""

    def __init__(self, folder: Path, *checks: str, files: Mapping[str, str] | None = None) -> None:
        self.project = BatchProject(folder).build_green([], files=files or {})
        self.checks = [Check(name=command, command=command) for command in checks]
        self.branches: list[FinishedBranch] = []
        self.ran: list[str] = []

    def finish(self, name: str, files: Mapping[str, str]) -> None:
        git = self.project.git
        git("switch", "--quiet", "--create", name, "main")
        for path, text in files.items():
            (self.project.folder / path).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", f"--message={name}")
        commit = git("rev-parse", "HEAD")
        git("switch", "--quiet", "main")
        number = len(self.branches) + 1
        self.branches.append(FinishedBranch(number=number, title=name, branch=name, commit=commit))

    async def integrate(self, branches: Sequence[FinishedBranch] | None = None) -> Integration:
        async with self.project.podium() as podium:
            context = await self._context(podium)
            return await integrate(context, branches or self.branches, 1)

    async def merge_base(self, index: int) -> RemoteMerge:
        async with self.project.podium() as podium:
            return await merge_remote_base(await self._context(podium), index)

    async def _context(self, podium: Podium) -> StageContext:
        deps = await _pipeline_deps(podium)
        existing = [record for record in podium.workspaces.existing() if record.task == "queue"]
        spec = WorkspaceSpec(
            task="queue", repository=str(self.project.folder), base="main", branch=BRANCH
        )
        workspace = (
            await podium.workspaces.open(existing[0].id)
            if existing
            else await podium.workspaces.create(spec)
        )
        job = await pipeline_job(podium, "Join them")
        state = PipelineState(
            job=job, run_id="run_test", workspace=workspace, head="", base=workspace.record.base
        )
        counted = deps.run_check

        async def run_check(place: Any, check: Check, seconds: float) -> Any:
            self.ran.append(check.command)
            return await counted(place, check, seconds)

        values = {**vars(deps), "checks": lambda: tuple(self.checks), "run_check": run_check}
        given = type(deps)(**values)
        return StageContext(cast(FlowContext, _Direct()), given, state, Baseline())


async def test_red_combination_is_bisected_and_what_is_before_it_stays(tmp_path: Path) -> None:
    queue = Queue(tmp_path, SUM)
    for number in range(1, 7):
        # Each alone, and the first four together, are less than five.
        queue.finish(f"branch-{number}", {f"n_{number}": "1"})
    result = await queue.integrate()
    assert [merged.number for merged in result.merged] == [1, 2, 3, 4]
    (left_out,) = result.refused
    assert left_out.number == 5
    assert "fails on top of the tasks merged before" in left_out.why
    assert merges_of(queue.project, BRANCH) == [
        f"Merge task {number}: branch-{number}" for number in range(1, 5)
    ]
    assert len(queue.ran) <= 6
    assert all(check.passed for check in result.checks)


async def test_conflict_is_refused_and_those_behind_it_are_merged(tmp_path: Path) -> None:
    queue = Queue(tmp_path, SUM)
    queue.finish("red", {"name.py": "RED\n"})
    queue.finish("blue", {"name.py": "BLUE\n"})
    queue.finish("other", {"n_1": "1"})
    result = await queue.integrate()
    assert [merged.number for merged in result.merged] == [1, 3]
    assert [(refused.number, refused.paths) for refused in result.refused] == [(2, ("name.py",))]
    assert len(queue.ran) == 1
    again = await queue.integrate([queue.branches[0]])
    assert again.head == result.head
    assert len(merges_of(queue.project, BRANCH)) == 2


async def test_check_that_fails_without_the_tasks_stops_nobody(tmp_path: Path) -> None:
    queue = Queue(tmp_path, "false", SUM)
    queue.finish("one", {"n_1": "1"})
    queue.finish("nine", {"n_2": "9"})
    first = await queue.integrate([queue.branches[0]])
    assert [merged.number for merged in first.merged] == [1]
    second = await queue.integrate([queue.branches[1]])
    assert not second.merged
    assert [refused.number for refused in second.refused] == [2]
    assert second.head == first.head == queue.project.git("rev-parse", BRANCH)


async def test_branch_that_breaks_more_of_a_red_check_is_refused(tmp_path: Path) -> None:
    broken = "import unittest\n\n\nclass {0}(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1, {1})\n"
    files = {"test_old.py": broken.format("Old", 2), "test_new.py": broken.format("New", 1)}
    queue = Queue(tmp_path, "python3 -m unittest -q", files=files)
    queue.finish("harmless", {"one.py": "ONE = 1\n"})
    queue.finish("breaks", {"test_new.py": broken.format("New", 2)})
    result = await queue.integrate()
    assert [merged.number for merged in result.merged] == [1]
    (refused,) = result.refused
    assert (refused.number, "test_new" in refused.why) == (2, True)
    again = await queue.integrate([queue.branches[1]])
    assert not again.merged


async def test_commits_of_the_remotes_base_are_merged_if_they_break_no_further_check(
    tmp_path: Path,
) -> None:
    queue = Queue(tmp_path, "false", SUM)
    git = queue.project.git
    git("init", "--quiet", "--bare", str(tmp_path / "origin.git"))
    git("remote", "add", "origin", str(tmp_path / "origin.git"))
    queue.finish("ahead", {"n_1": "1"})
    git("push", "--quiet", "origin", "ahead:main")
    merged = await queue.merge_base(1)
    assert (merged.why_not, merged.head) == ("", git("rev-parse", BRANCH))
    assert queue.project.tree(BRANCH)["n_1"] == "1"
    again = await queue.merge_base(2)
    assert again.head == merged.head
    git("switch", "--quiet", "ahead")
    (queue.project.folder / "n_2").write_text("9")
    git("add", "--all")
    git("commit", "--quiet", "--message=nine")
    git("push", "--quiet", "origin", "ahead:main")
    git("switch", "--quiet", "main")
    red = await queue.merge_base(3)
    assert "the checks fail on top of origin/main: `python3 -c" in red.why_not
    assert red.head == merged.head == git("rev-parse", BRANCH)
