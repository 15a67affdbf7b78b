"""The delivered branch is for reviewers: one or two commits, and the history with its documents on a ref of the run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.core.work import Run, RunStatus
from podium.git.branch_squash import BranchSquash
from podium.git.delivery import Deliveries
from podium.git.supervisor_repo import SupervisorRepo
from tests.integration.pipeline.pipeline_harness import (
    PLAN_PATH,
    RIGHT,
    TASK,
    Project,
    develops,
    smooth,
)
from tests.soaking import in_soak

SEED_LAYOUT = {"flows": {"pipeline": {"commits": "all", "documents": "branch"}}}


def succeeded(run: Run) -> Run:
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    return run


def turns() -> list[dict[str, Any]]:
    """The developer has an idea and a lesson beside its work."""
    return [develops(backlog_items=["Support floats"], lessons=["calc.py is imported"]), *smooth()]


async def test_branch_has_two_commits_and_no_document_and_the_ref_has_the_history(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(turns())
    run = succeeded(await project.run(mode="quick"))
    branch, ref = run.result["branch"], run.result["history_ref"]
    form = "--format=%s|%an|%cn|%(trailers:key=Podium-Run,valueonly,separator=%x2C)"
    assert project.git("log", "--reverse", form, f"main..{branch}").splitlines() == [
        f"{TASK}|Ann|Podium|{run.id}",
        f"Record backlog and lessons of make-the-sum-right|Podium|Podium|{run.id}",
    ]
    assert set(project.tree(branch)) - set(project.tree("main")) == {
        "docs/dev_docs/backlog.md",
        "AGENT_MEMORY.md",
        ".gitattributes",
    }
    assert project.git("show", "--format=", "--name-only", f"{branch}~1") == "calc.py"
    assert "* Add instead of subtracting" in project.git("show", "--format=%B", f"{branch}~1")
    assert ref == f"refs/podium/runs/{run.id}/{run.result['history'][:12]}/history"
    assert PLAN_PATH in run.result["documents"]
    assert set(run.result["documents"]) <= set(project.tree(ref))
    assert project.git("rev-parse", f"{ref}:calc.py") == project.git(
        "rev-parse", f"{branch}:calc.py"
    )
    commits = {stage["commit"] for stage in run.result["stages"]}
    for commit in commits:
        project.git("merge-base", "--is-ancestor", commit, ref)
    assert project.git("-C", run.result["workspace"], "status", "--porcelain") == ""
    assert project.git("-C", run.result["workspace"], "rev-parse", "HEAD") == run.result["commit"]
    body = Path(run.result["pull_request"]["file"]).read_text()
    assert f"git show {ref}:" in body
    project.git("merge", "--quiet", "--ff-only", branch)
    async with project.podium() as podium:
        (removal,) = [await podium.workspaces.remove(w.id) for w in podium.workspaces.existing()]
    assert removal.removed, removal.because
    assert project.git("rev-parse", ref) == run.result["history"]


async def test_layout_of_the_seed_keeps_all_commits_and_archives_the_documents(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(turns(), settings=SEED_LAYOUT)
    run = succeeded(await project.run(mode="quick"))
    branch = run.result["branch"]
    subjects = project.git("log", "--format=%s", f"main..{branch}").splitlines()
    assert subjects[0].startswith("Archive the documents of")
    assert "Add instead of subtracting" in subjects
    assert set(run.result["documents"]) <= set(project.tree(branch))
    assert run.result["history_ref"] == ""
    assert project.git("for-each-ref", "refs/podium/runs") == ""


POINTS = {
    "commits_made": (BranchSquash, "_imported"),
    "branch_moved": (Deliveries, "_settle"),
    "branch_noted": (Deliveries, "replace"),
    "workspace_follows": (SupervisorRepo, "publish"),
}


def die_in_delivery(folder: str, point: str) -> None:
    """Run until the point, and be killed behind it."""
    owner, name = POINTS[point]
    original, squash = getattr(owner, name), BranchSquash.squash

    async def watched(self: BranchSquash, *arguments: Any) -> Any:
        setattr(owner, name, dies)
        return await squash(self, *arguments)

    def dies(self: Any, *arguments: Any) -> Any:
        result = original(self, *arguments)
        if not hasattr(result, "__await__"):
            os.kill(os.getpid(), signal.SIGKILL)

        async def finish() -> None:
            await result
            os.kill(os.getpid(), signal.SIGKILL)

        return finish()

    BranchSquash.squash = watched  # type: ignore[method-assign, assignment] # of a process that dies
    asyncio.run(Project(Path(folder)).run(mode="quick"))


@pytest.mark.parametrize(
    "point", ["branch_moved", *(in_soak(point) for point in POINTS if point != "branch_moved")]
)
async def test_delivery_that_was_killed_makes_the_same_commits_again(
    tmp_path: Path, point: str
) -> None:
    project = Project(tmp_path).build(turns())
    script = (
        f"from {__name__} import die_in_delivery; die_in_delivery({str(tmp_path)!r}, {point!r})"
    )
    ended = subprocess.run([sys.executable, "-c", script], env=project.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    refs = "--format=%(refname) %(objectname)", "refs/podium/runs/*/*/delivered"
    name, _, made = project.git("for-each-ref", *refs).partition(" ")
    run = succeeded(await project.resume(name.split("/")[3]))
    assert made == run.result["commit"]
    assert project.git("rev-parse", run.result["branch"]) == run.result["commit"]
    assert project.tree(run.result["branch"])["calc.py"] == RIGHT.strip()
    assert PLAN_PATH not in project.tree(run.result["branch"])
    assert PLAN_PATH in project.tree(run.result["history_ref"])
    assert project.git("-C", run.result["workspace"], "status", "--porcelain") == ""
