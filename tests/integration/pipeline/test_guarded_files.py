"""Guarded files that an agent commits wait for a person, and the pull request names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.app.approvals import approve, reject
from podium.core.work import Run, RunStatus
from tests.integration.pipeline.pipeline_harness import (
    VERIFICATION_PATH,
    Project,
    develops,
    smooth,
    turn,
    writes,
)

WORKFLOW = ".github/workflows/ci.yml"
SCRIPT = f"mkdir -p .github/workflows; echo 'on: push' > {WORKFLOW}; rm plant.sh\n"


def built(folder: Path, *more: dict[str, Any]) -> Project:
    """A developer who writes a workflow by the shell, beside the work."""
    first = develops(when="Stage: develop, round 1")
    # A command that names the path is asked about before it runs; a script hides it.
    first["acts"] = [writes("plant.sh", SCRIPT), {"run": "sh plant.sh"}, *first["acts"]]
    return Project(folder).build([first, *more, *smooth()])


async def answered(project: Project, run: Run, *, yes: bool) -> Run:
    """The run after a person's answer, gone on with by a process that knows the record alone."""
    async with project.podium() as podium:
        store, named = await podium.store(), (run.waiting_for or "").removeprefix("approval:")
        approval = await store.read(lambda view: view.approval(named))
        assert approval is not None
        assert approval.arguments["files"] == [f"{WORKFLOW} (new)"]
        assert "+on: push" in str(approval.arguments["diff"])
        if yes:
            await approve(store, podium.clock, podium.ids, named, by="ann")
        else:
            await reject(store, podium.clock, podium.ids, named, by="ann", why="no workflows")
    return await project.resume(run.id)


async def test_a_workflow_waits_for_a_person_and_is_named_in_the_pull_request(
    tmp_path: Path,
) -> None:
    project = built(tmp_path)
    run = await project.run()
    assert run.status is RunStatus.WAITING, await project.events(run.id)
    branch = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/task")
    assert WORKFLOW not in project.tree(branch)
    run = await answered(project, run, yes=True)
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert project.tree(branch)[WORKFLOW] == "on: push"
    assert run.result["guarded"][0].startswith(f"{WORKFLOW} (new), approved by ann (apr_")
    body = Path(run.result["pull_request"]["file"]).read_text()
    assert "## Guarded files" in body
    assert "T2: touches `automation`" in body
    assert WORKFLOW in body


@pytest.mark.soak
async def test_a_workflow_that_is_rejected_goes_back_to_the_developer(tmp_path: Path) -> None:
    again = turn(
        "developer",
        *develops()["acts"][:1],
        writes(VERIFICATION_PATH, "# Verified\n\n- [x] add(2, 2) == 4\n"),
        {"commit": "Add instead of subtracting"},
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
        when="Stage: develop, round 2",
    )
    project = built(tmp_path, again)
    run = await answered(project, await project.run(), yes=False)
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    branch = run.result["branch"]
    assert WORKFLOW not in project.git("log", "--name-only", "--format=", f"main..{branch}")
    ended = [e for e in await project.events(run.id) if e["type"] == "stage_ended"]
    text = "\n".join(problem for e in ended for problem in e["problems"])
    assert f"changes to {WORKFLOW} (new) were not approved: ann rejected" in text
    assert "no workflows" in text
    assert run.result["guarded"] == []
