"""Podium's own git tools in a workspace: they work in its private git directory, as commands do."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.app.kernel_flows import supervisor_toolboxes
from podium.core.decisions import CallOutcome
from podium.core.processes import ProcessSpec
from podium.ports import Workspace
from tests.integration.wiring.test_podium import configured
from tests.integration.workspaces.workspace_harness import git, make_repository, needs_bwrap


async def opened(folder: Path, podium: Podium) -> Workspace:
    project = podium.folders.project
    make_repository(folder / "made")
    (folder / "made/.git").rename(project / ".git")
    git(project, "reset", "-q", "--hard")
    return await podium.workspaces.create(podium.workspace_spec("t1"))


@pytest.mark.sample(1)
@needs_bwrap()
@pytest.mark.parametrize("kind", ["kernel", "none"])
async def test_a_commit_reaches_the_users_repository_by_delivery_alone(
    tmp_path: Path, kind: str
) -> None:
    podium = configured(tmp_path, user=f"sandbox: {kind}\n")
    workspace = await opened(tmp_path, podium)
    root, branch = workspace.record.path, workspace.record.branch
    before = git(podium.folders.project, "rev-parse", branch)
    (Path(root) / "new.txt").write_text("new\n")
    toolbox = await supervisor_toolboxes(podium)(root)
    arguments = {"message": "Add a file", "paths": []}
    call = toolbox.normalise(
        "git_commit", arguments, run_id="run_1", step_key="s", index=0, root=root
    )
    done = await toolbox.perform(call)
    assert isinstance(done, CallOutcome), done
    assert done.ok, done.error
    assert git(podium.folders.project, "rev-parse", branch) == before
    fence = await podium.confinement_provider.confinement(root)
    argv = ("git", "rev-parse", "HEAD")
    seen = await podium.launcher.run(ProcessSpec(argv=argv, cwd=root, confinement=fence))
    assert seen.stdout.decode().strip() == done.result["commit"]
    await workspace.deliver()
    assert git(podium.folders.project, "rev-parse", branch) == done.result["commit"]
